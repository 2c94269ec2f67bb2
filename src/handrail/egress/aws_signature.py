"""Requests to AWS (Signature Version 4): signed by a command with a placeholder, signed again with the secret access key."""

from __future__ import annotations

import hashlib
import hmac
import re
from urllib.parse import quote, unquote

from .http_messages import BadMessage, Head

_AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=(?P<id>[^/,\s]+)/(?P<scope>[^,\s]+),\s*SignedHeaders=(?P<names>[^,\s]+),\s*"
    r"Signature=(?P<signature>[0-9a-f]{64})"
)


def signed_again(head: Head, body: bytes | None, placeholder: str, value: str) -> Head:
    """The head with a signature by `value`, if the one that it has is by `placeholder`; else the head as it is.

    A body whose chunks are signed one by one is refused: those signatures would not fit. Raises BadMessage.
    """
    given = "".join(head.values("authorization"))
    found = _AUTHORIZATION.fullmatch(given)
    if found is None:
        return head
    payload = "".join(head.values("x-amz-content-sha256")) or hashlib.sha256(body or b"").hexdigest()
    for is_encoded_twice in (True, False):  # every service but S3 encodes the path of the URL once more
        text = _text_to_sign(head, found, payload, is_encoded_twice=is_encoded_twice)
        if hmac.compare_digest(_signature(placeholder, found["scope"], text), found["signature"]):
            if payload.startswith("STREAMING-AWS4"):
                raise BadMessage("the chunks of its body are signed one by one, which cannot be signed again")
            new = given.replace(found["signature"], _signature(value, found["scope"], text))
            return Head(head.first, [(n, new if n.lower() == "authorization" else v) for n, v in head.fields])
    return head


def _text_to_sign(head: Head, found: re.Match[str], payload: str, *, is_encoded_twice: bool) -> str:
    method, target, _ = head.first.split(" ")
    path, _, query = target.partition("?")
    if is_encoded_twice:
        path = quote(path, safe="/-_.~")
    pairs = [(name, value) for name, _, value in (part.partition("=") for part in query.split("&") if part)]
    pairs = sorted((_encoded(name), _encoded(value)) for name, value in pairs)
    names = found["names"].split(";")
    fields = "".join(f"{name}:{','.join(' '.join(value.split()) for value in head.values(name))}\n" for name in names)
    canonical = [
        method,
        path or "/",
        "&".join(f"{name}={value}" for name, value in pairs),
        fields,
        found["names"],
        payload,
    ]
    digest = hashlib.sha256("\n".join(canonical).encode()).hexdigest()
    date = "".join(head.values("x-amz-date"))
    return "\n".join(["AWS4-HMAC-SHA256", date, found["scope"], digest])


def _encoded(text: str) -> str:
    return quote(unquote(text), safe="-_.~")


def _signature(secret: str, scope: str, text: str) -> str:
    key = f"AWS4{secret}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.digest(key, text.encode(), "sha256").hex()
