"""A small client of AWS: signs a request by Signature Version 4 with the key in $API, and sends it."""

import hashlib
import hmac
import os
import sys
import urllib.parse
import urllib.request

DATE, REGION = "20260101T000000Z", "eu-west-1"


def signature(secret, service, path, headers, body):
    names = sorted(name.lower() for name in headers if name.lower() == "host" or name.lower().startswith("x-amz-"))
    values = {name.lower(): value for name, value in headers.items()}
    path, _, query = path.partition("?")
    if service != "s3":
        path = urllib.parse.quote(path, safe="/")
    pairs = sorted(urllib.parse.parse_qsl(query, keep_blank_values=True))
    query = "&".join(
        f"{urllib.parse.quote(name, safe='')}={urllib.parse.quote(value, safe='')}" for name, value in pairs
    )
    payload = values.get("x-amz-content-sha256") or hashlib.sha256(body).hexdigest()
    fields = "".join(f"{name}:{values[name]}\n" for name in names)
    canonical = "\n".join(["POST", path, query, fields, ";".join(names), payload])
    scope = f"{DATE[:8]}/{REGION}/{service}/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", DATE, scope, hashlib.sha256(canonical.encode()).hexdigest()])
    key = ("AWS4" + secret).encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def main():
    service, url = sys.argv[1:]
    parts = urllib.parse.urlsplit(url)
    body = b"Action=GetCallerIdentity"
    headers = {"Host": parts.netloc, "X-Amz-Date": DATE}
    if service == "s3":
        headers["X-Amz-Content-Sha256"] = hashlib.sha256(body).hexdigest()
    path = f"{parts.path}?{parts.query}"
    names = ";".join(sorted(name.lower() for name in headers))
    found = signature(os.environ["API"], service, path, headers, body)
    scope = f"{DATE[:8]}/{REGION}/{service}/aws4_request"
    headers["Authorization"] = f"AWS4-HMAC-SHA256 Credential=AKID/{scope}, SignedHeaders={names}, Signature={found}"
    with urllib.request.urlopen(urllib.request.Request(url, data=body, headers=headers)) as answer:
        print(answer.read().decode())


if __name__ == "__main__":
    main()
