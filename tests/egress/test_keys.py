"""Keys that commands use and never see: put in for their hosts alone, hidden in what comes back, found nowhere."""

from __future__ import annotations

import base64
import html
import json
import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest

from handrail.egress.http_messages import Head, Mask, Server
from handrail.egress.keys import SecretValues, TaskKeys, _forms
from handrail.errors import ConfigError
from handrail.protocols import Decision
from handrail.settings.services import SecretConfig

from ..services.components import require
from .conftest import VALUE, MakeTask
from .servers import HOST, OTHER, Recorded, serving

STARS = "*" * len(VALUE)


def echoed(answer: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(answer["output"])
    return found


@pytest.mark.parametrize(
    ("how", "arguments", "path", "header"),
    [
        ("bearer", '-H "Authorization: Bearer $API"', "/", ("Authorization", f"Bearer {VALUE}")),
        ("header", '-H "X-Api-Key: $API"', "/", ("X-Api-Key", VALUE)),
        ("cookie", '-b "session=$API"', "/", ("Cookie", f"session={VALUE}")),
        ("basic", '-u "me:$API"', "/", ("Authorization", f"Basic {base64.b64encode(f'me:{VALUE}'.encode()).decode()}")),
        ("query", "", "/?key=$API", ("", "")),
    ],
)
@pytest.mark.parametrize("kind", ["", "chunked", "gzip"])
def test_the_value_goes_to_its_host_and_is_hidden_in_the_answer(
    make_task: MakeTask, tls: Recorded, how: str, arguments: str, path: str, header: tuple[str, str], kind: str
) -> None:
    task = make_task({}, {"api": {"how": how}})

    answer = task.run(f'curl -sS {arguments} "https://{HOST}:{tls.port}/{kind}{path[1:]}"')

    (_, sent_path, sent, _) = tls.requests[0]
    if how == "query":
        assert sent_path == f"/{kind}?key={quote(VALUE, safe='')}"
    else:
        assert sent[header[0]] == header[1]
    assert answer["exit_code"] == 0, answer
    shown = echoed(answer)
    assert VALUE not in answer["output"]
    assert base64.b64encode(VALUE.encode()).decode() not in answer["output"]
    assert not header[1] or header[1] not in json.dumps(shown)
    assert "****" in json.dumps(shown)


@pytest.mark.parametrize(
    "arguments",
    [
        '-H "X-Api-Key: $API"',
        '-b "session=$API"',
        '-d "$API"',
        '-u "me:$API"',
        '-A "$API"',
    ],
)
def test_the_value_is_put_in_nowhere_else(make_task: MakeTask, tls: Recorded, arguments: str) -> None:
    """A comment that holds the placeholder must not publish the value."""
    task = make_task({}, {"api": {"how": "bearer"}})

    task.run(f'curl -sS {arguments} "https://{HOST}:{tls.port}/?q=$API"')

    assert VALUE not in repr(tls.requests)
    assert base64.b64encode(f"me:{VALUE}".encode()).decode() not in repr(tls.requests)


@pytest.mark.parametrize("arguments", ['-H "X: $API"', '-d "$API"', '-u "$API:"', "-G --data-urlencode k=$API"])
def test_a_placeholder_for_another_host_asks_and_never_becomes_the_value(
    make_task: MakeTask, plain: Recorded, arguments: str
) -> None:
    task = make_task({}, {"api": {"how": "header"}})

    answer = task.run(f"curl -sS {arguments} http://{OTHER}:{plain.port}/")

    assert task.asked.texts == [f"curl wants {OTHER}:{plain.port}: secret api"]
    assert [offer.value for offer in task.asked.requests[0].offers] == ["once", "deny"]
    assert "placeholder of the secret api" in answer["note"]
    assert VALUE not in repr(plain.requests)
    assert all(not body for *_, body in plain.requests)
    task.asked.decision = Decision.ONCE
    task.run(f"curl -sS {arguments} http://{OTHER}:{plain.port}/")
    assert plain.requests
    assert VALUE not in repr(plain.requests)


def test_its_own_host_does_not_get_it_without_tls(make_task: MakeTask, plain: Recorded) -> None:
    task = make_task({}, {"api": {"how": "bearer"}})

    task.run(f'curl -sS -H "Authorization: Bearer $API" http://{HOST}:{plain.port}/')

    assert task.asked.texts == [f"curl wants {HOST}:{plain.port}: secret api"]
    assert plain.requests == []


def test_a_secret_of_another_host_is_not_put_in(make_task: MakeTask, tls: Recorded) -> None:
    task = make_task({}, {"one": {"how": "header"}, "two": {"how": "header", "hosts": (OTHER,)}})

    task.run(f'curl -sS -H "X: $TWO" https://{HOST}:{tls.port}/')

    assert task.asked.texts == [f"curl wants {HOST}:{tls.port}: secret two"]
    assert tls.requests == []


def test_a_request_for_another_host_in_the_same_connection_is_refused(make_task: MakeTask, tls: Recorded) -> None:
    task = make_task({}, {"api": {"how": "header"}})

    answer = task.run(f'curl -sS -H "X: $API" -H "Host: {OTHER}" https://{HOST}:{tls.port}/')

    assert "names another host" in answer["output"]
    assert tls.requests == []


def test_the_server_has_to_prove_who_it_is(make_task: MakeTask, tls: Recorded) -> None:
    task = make_task({"ca_file": ""}, {"api": {"how": "bearer"}})

    answer = task.run(f'curl -sS -H "Authorization: Bearer $API" https://{HOST}:{tls.port}/')

    assert "no certificate that is trusted here" in answer["output"]
    assert tls.requests == []


def test_the_authority_is_good_for_hosts_with_a_key_alone(make_task: MakeTask, tls: Recorded) -> None:
    task = make_task({}, {"api": {}})

    answer = task.run(f"curl -sS https://{OTHER}:{tls.port}/; openssl x509 -in $SSL_CERT_FILE -noout -text")

    assert "SSL certificate problem" in answer["output"], (
        "the server's own certificate, which the command does not trust"
    )
    assert f"DNS:{HOST}" in answer["output"].partition("Name Constraints: critical")[2]


def test_a_program_with_certificates_of_its_own_is_explained_to_the_model(make_task: MakeTask, tls: Recorded) -> None:
    task = make_task({}, {"api": {}})

    answer = task.run(f"curl -sS --cacert /etc/ssl/certs/ca-certificates.crt https://{HOST}:{tls.port}/")

    assert "does not trust this task's authority" in answer["note"]


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"source": "vault:x"}, "is not a source"),
        ({"hosts": ()}, "the hosts that may get the value"),
        ({"hosts": ("http://x",)}, "is not a host"),
        ({"variable": "A B"}, "cannot be the name"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(settings: dict[str, Any], problem: str) -> None:
    config = {"api": SecretConfig(**{"source": "environment:X", "hosts": (HOST,), **settings})}

    with pytest.raises(ConfigError, match=problem):
        TaskKeys(config, SecretValues(config))


def test_values_come_from_a_file_and_a_command(make_task: MakeTask, tls: Recorded, tmp_path: Path) -> None:
    (tmp_path / "key").write_text(f"{VALUE}\n")
    secrets = {
        "one": {"source": f"file:{tmp_path}/key", "how": "header"},
        "two": {"source": "command:printf from-a-command", "how": "header"},
    }
    task = make_task({}, secrets)

    answer = task.run(f'cat key; curl -sS -H "A: $ONE" -H "B: $TWO" https://{HOST}:{tls.port}/')

    assert (tls.requests[0][2]["A"], tls.requests[0][2]["B"]) == (VALUE, "from-a-command")
    assert VALUE not in json.dumps(answer)
    read = str(task.app.handle_function_call("read_file", {"path": str(tmp_path / "key")}, task_id="t"))
    assert VALUE not in read


def test_a_secret_that_cannot_be_read_is_said_without_it(make_task: MakeTask, tls: Recorded) -> None:
    task = make_task({}, {"api": {"source": "command:echo short; exit 3"}})

    answer = task.run(f"curl -sS https://{HOST}:{tls.port}/")

    assert "the secret api cannot be read from its command" in answer["output"]
    assert tls.requests == []


@pytest.mark.parametrize("before", ["", "a", "ab"])
def test_a_value_is_hidden_as_servers_repeat_it(before: str) -> None:
    value = 'k3y/+"<&>=end'
    mask = Mask(_forms(value))
    texts = [before + value, before + value.replace("/", r"\/").replace('"', r"\""), html.escape(before + value)]
    texts += [quote_plus(before + value), quote(before + value).lower(), (before + value).encode().hex()]
    encoded = base64.b64encode(f"{before}{value} and more".encode()).decode()
    for text in (*texts, encoded, encoded.translate(str.maketrans("+/", "-_"))):
        assert b"***" in mask.whole(text.encode()), text
        assert b"end" not in mask.whole(text.encode()), text
        assert b"VuZ" not in mask.whole(text.encode()), text  # of the value's end in base64


def test_what_a_web_socket_gets_is_not_compressed(make_task: MakeTask, tls: Recorded) -> None:
    task = make_task({}, {"api": {}})

    task.run(f"curl -sS -H 'Sec-WebSocket-Extensions: permessage-deflate' https://{HOST}:{tls.port}/")

    assert not any("extensions" in name.lower() for name in tls.requests[0][2])


def test_a_mask_finds_a_value_in_pieces_of_any_size() -> None:
    text = b"before " + VALUE.encode() + b" after " + VALUE.encode()
    for size in range(1, 30):
        mask = Mask([VALUE.encode(), b"before it"])
        pieces = [mask.feed(text[at : at + size]) for at in range(0, len(text), size)]
        assert b"".join([*pieces, mask.rest()]) == text.replace(VALUE.encode(), STARS.encode())


CLIENTS = Path(__file__).parent / "clients"


@pytest.mark.parametrize("client", ["requests", "httpx", "urllib"])
def test_python_clients_use_a_key(make_task: MakeTask, tls: Recorded, client: str, tmp_path: Path) -> None:
    calls = {
        "requests": "import requests; print(requests.get(url, headers=headers).text)",
        "httpx": "import httpx; print(httpx.get(url, headers=headers).text)",
        "urllib": "import urllib.request as u; print(u.urlopen(u.Request(url, headers=headers)).read().decode())",
    }
    (tmp_path / "client.py").write_text(
        f"import os; url = 'https://{HOST}:{tls.port}/'; headers = {{'Authorization': 'Bearer ' + os.environ['API']}}\n"
        + calls[client]
    )
    task = make_task({}, {"api": {}})

    answer = task.run(f"{sys.executable} client.py")

    assert tls.requests[0][2]["Authorization"] == f"Bearer {VALUE}", answer
    assert VALUE not in json.dumps(answer)
    assert STARS in answer["output"]


GO_CLIENT = """
package main

import ("fmt"; "io"; "net/http"; "os")

func main() {
    request, _ := http.NewRequest("GET", os.Args[1], nil)
    request.Header.Set("Authorization", "Bearer " + os.Getenv("API"))
    answer, err := http.DefaultClient.Do(request)
    if err != nil { panic(err) }
    body, _ := io.ReadAll(answer.Body)
    fmt.Println(string(body))
}
"""


def test_go_uses_a_key(make_task: MakeTask, tls: Recorded, tmp_path: Path) -> None:
    require("go", packages="golang-go")
    (tmp_path / "client.go").write_text(GO_CLIENT)
    env = {**os.environ, "GOCACHE": str(tmp_path / "cache"), "GOFLAGS": "-mod=mod", "GOPROXY": "off"}
    subprocess.run(["go", "build", "-o", "client", "client.go"], cwd=tmp_path, env=env, check=True)
    task = make_task({}, {"api": {}})

    answer = task.run(f"./client https://{HOST}:{tls.port}/")

    assert tls.requests[0][2]["Authorization"] == f"Bearer {VALUE}", answer
    assert STARS in answer["output"]


JAVA_CLIENT = """
import java.net.*;
import java.net.http.*;

class Client {
    public static void main(String[] words) throws Exception {
        URI where = URI.create(words[1]);
        String login = "Bearer " + System.getenv("API");
        if (words[0].equals("connection")) {
            URLConnection connection = where.toURL().openConnection();
            connection.setRequestProperty("Authorization", login);
            System.out.println(new String(connection.getInputStream().readAllBytes()));
        } else {
            HttpRequest request = HttpRequest.newBuilder(where).header("Authorization", login).build();
            System.out.println(HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString()).body());
        }
    }
}
"""


@pytest.mark.parametrize("client", ["connection", "client"])
@pytest.mark.parametrize("contain", ["off", "on"])
def test_java_uses_a_key(make_task: MakeTask, tls: Recorded, tmp_path: Path, client: str, contain: str) -> None:
    """It reads no variable for its proxy, and has no setting for the proxy's token."""
    require("javac", packages="default-jdk-headless")
    (tmp_path / "Client.java").write_text(JAVA_CLIENT)
    task = make_task({"contain": contain}, {"api": {}})

    answer = task.run(f"java Client.java {client} https://{HOST}:{tls.port}/", timeout=120)

    assert tls.requests, answer
    assert tls.requests[0][2]["Authorization"] == f"Bearer {VALUE}"
    assert STARS in answer["output"]
    assert VALUE not in json.dumps(answer)


NODE_CLIENTS = {
    "fetch": "fetch(url, {headers}).then(r => r.text()).then(console.log)",
    "https": "require('https').get(url, {headers}, r => r.pipe(process.stdout))",
}


@pytest.mark.parametrize("client", NODE_CLIENTS)
def test_a_program_that_ignores_proxies_is_led_to_one(
    make_task: MakeTask, tls: Recorded, tmp_path: Path, client: str
) -> None:
    begin = f"const url = 'https://{HOST}:{tls.port}/', headers = {{Authorization: 'Bearer ' + process.env.API}};"
    (tmp_path / "client.js").write_text(begin + NODE_CLIENTS[client])
    task = make_task({"contain": "on"}, {"api": {}})

    answer = task.run("env -u NODE_USE_ENV_PROXY node client.js", timeout=60)

    assert tls.requests, answer
    assert tls.requests[0][2]["Authorization"] == f"Bearer {VALUE}"
    assert STARS in answer["output"]
    assert task.asked.requests == []


def test_npm_uses_a_key(make_task: MakeTask, tls: Recorded, tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text("{}")
    (tmp_path / ".npmrc").write_text(f"//{HOST}:{tls.port}/:_authToken=${{API}}\n")
    task = make_task({}, {"api": {}})

    answer = task.run(f"npm view thing --registry=https://{HOST}:{tls.port}/ --fetch-retries=0", timeout=120)

    assert f"Bearer {VALUE}" in [value for _, _, headers, _ in tls.requests for value in headers.values()], answer
    assert VALUE not in json.dumps(answer)


def test_pip_uses_a_key(make_task: MakeTask, tls: Recorded) -> None:
    task = make_task({}, {"api": {"how": "basic"}})

    answer = task.run(
        f"{sys.executable} -m pip download --no-deps --retries 0 --isolated --cert $PIP_CERT "
        f"--index-url https://me:$API@{HOST}:{tls.port}/simple thing",
        timeout=120,
    )

    assert tls.requests, answer
    assert tls.requests[-1][2]["Authorization"] == f"Basic {base64.b64encode(f'me:{VALUE}'.encode()).decode()}"
    assert VALUE not in json.dumps(answer)


class GitServer(BaseHTTPRequestHandler):
    """git http-backend behind a basic login."""

    protocol_version = "HTTP/1.1"
    server: Recorded
    root = Path()

    def log_message(self, *_: Any) -> None:
        """Quiet."""

    def _handle(self) -> None:
        path, _, query = self.path.partition("?")
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        self.server.requests.append((self.command, self.path, dict(self.headers), body))
        if self.headers.get("authorization") != f"Basic {base64.b64encode(f'me:{VALUE}'.encode()).decode()}":
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="git"')
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        env = {
            **os.environ,
            "GIT_PROJECT_ROOT": str(self.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("content-type", ""),
            "HTTP_CONTENT_ENCODING": self.headers.get("content-encoding", ""),
            "REMOTE_USER": "me",
        }
        found = subprocess.run(["git", "http-backend"], env=env, input=body, capture_output=True, check=True).stdout
        head, _, rest = found.partition(b"\r\n\r\n")
        self.send_response(200)
        for line in head.decode().splitlines():
            self.send_header(*line.split(": ", 1))
        self.send_header("Content-Length", str(len(rest)))
        self.end_headers()
        self.wfile.write(rest)

    do_GET = do_POST = _handle  # noqa: N815  the names that the server looks for


@pytest.fixture
def git_server(tmp_path: Path, certificate: tuple[Any, Path]) -> Iterator[Recorded]:
    GitServer.root = tmp_path / "served"
    subprocess.run(["git", "init", "-q", "--bare", str(GitServer.root / "repo.git")], check=True)
    subprocess.run(["git", "-C", str(GitServer.root / "repo.git"), "config", "http.receivepack", "true"], check=True)
    with serving(certificate[0], GitServer) as server:
        yield server


def test_git_clones_and_pushes_over_https_with_a_key(make_task: MakeTask, git_server: Recorded) -> None:
    task = make_task({}, {"api": {"how": "basic"}})

    answer = task.run(
        f"git clone -q https://me:$API@{HOST}:{git_server.port}/repo.git work && cd work && echo x > f && git add f && "
        "git -c user.name=n -c user.email=e@example.org commit -qm m && git push -q origin HEAD:main && cat .git/config",
        timeout=120,
    )

    assert answer["exit_code"] == 0, answer
    assert VALUE not in json.dumps(answer)
    pushed = subprocess.run(
        ["git", "-C", str(GitServer.root / "repo.git"), "log", "--format=%s", "main"], capture_output=True, text=True
    )
    assert pushed.stdout.strip() == "m"


@pytest.mark.parametrize("service", ["s3", "sts"])
def test_requests_to_aws_are_signed_again(make_task: MakeTask, tls: Recorded, tmp_path: Path, service: str) -> None:
    """A client signs with the placeholder; the signature that arrives is the one of the value."""
    shutil.copy(CLIENTS / "aws_client.py", tmp_path)
    task = make_task({}, {"api": {"how": "sigv4"}})

    answer = task.run(f"{sys.executable} aws_client.py {service} https://{HOST}:{tls.port}/a%20b/c?x=1\\&a=%2F")

    (_, path, headers, body) = tls.requests[0]
    sys.path.insert(0, str(CLIENTS))
    try:
        import aws_client
    finally:
        sys.path.pop(0)
    expected = aws_client.signature(VALUE, service, path, headers, body)
    assert f"Signature={expected}" in headers["Authorization"], answer


SEARCH = """
import os, sys
needle, top = bytes(byte ^ 1 for byte in bytes.fromhex(sys.argv[1])), sys.argv[2:]
places = ["environ", "cmdline"]
seen = 0
def look(where, read):
    global seen
    try:
        if needle in read(): print("found in", where)
        seen += 1
    except (OSError, ValueError, OverflowError): pass
def file_text(path, most=64 << 20):
    with open(path, "rb") as file: return file.read(most)
for pid in filter(str.isdigit, os.listdir("/proc")):
    for place in places: look(f"/proc/{pid}/{place}", lambda: file_text(f"/proc/{pid}/{place}"))
    try: fds = os.listdir(f"/proc/{pid}/fd")
    except OSError: fds = []
    for fd in fds:
        if os.path.isfile(f"/proc/{pid}/fd/{fd}"): look(f"/proc/{pid}/fd/{fd}", lambda: file_text(f"/proc/{pid}/fd/{fd}"))
    if int(pid) == os.getpid(): continue
    try: maps = file_text(f"/proc/{pid}/maps").decode().splitlines()
    except OSError: maps = []
    for line in maps:
        begin, end = (int(each, 16) for each in line.split()[0].split("-"))
        if line.split()[1][0] == "r" and end - begin < 256 << 20:
            def memory():
                with open(f"/proc/{pid}/mem", "rb", buffering=0) as file:
                    file.seek(begin)
                    return file.read(end - begin)
            look(f"the memory of {pid}", memory)
for folder in top:
    for where, folders, names in os.walk(folder):
        folders[:] = [each for each in folders if os.path.join(where, each) not in ("/proc", "/sys", "/dev")]
        for name in names:
            path = os.path.join(where, name)
            if os.path.isfile(path) and not os.path.islink(path): look(path, lambda: file_text(path))
print("searched", seen > 100)
"""


def test_the_value_is_found_nowhere(
    make_task: MakeTask, tls: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not in an environment, argument, file, descriptor or memory that commands can read, nor in what is stored.

    SEARCHED has the folders to search besides those of the test: / for everything.
    """
    value = secrets.token_urlsafe(24)  # that of the other tests is in their text
    (tmp_path / "key").write_text(value)
    configured = {"api": {}, "filed": {"source": f"file:{tmp_path}/key", "how": "header"}}
    task = make_task({}, configured)
    monkeypatch.setenv("TESTS_VALUE", value)
    used = task.run(f'curl -sS -H "Authorization: Bearer $API" -H "X: $FILED" https://{HOST}:{tls.port}/; env; set')
    assert value in tls.requests[0][2]["Authorization"]
    (tmp_path / "search.py").write_text(SEARCH)
    hidden = bytes(byte ^ 1 for byte in value.encode()).hex()  # so that the search does not find itself
    folders = os.environ.get("SEARCHED", f"{tmp_path} /run /tmp/handrail* $HOME/.config $HOME/.cache/handrail")

    answer = task.run(f"{sys.executable} search.py {hidden} {folders} 2>&1", timeout=600)

    assert answer["output"].split("\n")[:-1] == ["searched True"], answer
    assert value not in json.dumps([used, answer])
    stored = [
        path for path in (tmp_path / "home0").rglob("*") if path.is_file() and value.encode() in path.read_bytes()
    ]
    assert stored == []


def test_a_background_process_uses_a_key_too(make_task: MakeTask, tls: Recorded) -> None:
    task = make_task({}, {"api": {}})

    started = task.run(f'curl -sS -H "Authorization: Bearer $API" https://{HOST}:{tls.port}/', background=True)
    waited = task.app.handle_function_call(
        "process", {"action": "wait", "session_id": started["session_id"], "timeout": 30}, task_id="t"
    )

    assert tls.requests[0][2]["Authorization"] == f"Bearer {VALUE}"
    assert VALUE not in str(waited)


def test_a_script_uses_a_key_too(make_task: MakeTask, tls: Recorded) -> None:
    task = make_task({}, {"api": {}})
    code = (
        "import os, urllib.request as u\n"
        f"r = u.Request('https://{HOST}:{tls.port}/', headers={{'Authorization': 'Bearer ' + os.environ['API']}})\n"
        "print(u.urlopen(r).read().decode())"
    )

    answer = str(task.app.handle_function_call("execute_code", {"code": code}, task_id="t"))

    assert tls.requests[0][2]["Authorization"] == f"Bearer {VALUE}", answer
    assert VALUE not in answer


def test_each_task_has_placeholders_of_its_own() -> None:
    config = {"api": SecretConfig(source="environment:X", hosts=(HOST,))}
    one, two = (TaskKeys(config, SecretValues(config)) for _ in range(2))

    assert one.variables()["API"] != two.variables()["API"]
    assert one.variables()["X"] == one.variables()["API"]
    assert two.misplaced(one.variables()["API"].encode(), Server(OTHER, 443, is_tls=True)) == ""


def test_a_head_is_written_as_it_was_read() -> None:
    head = Head("GET / HTTP/1.1", [("A", "b"), ("a", "c")])

    assert head.values("a") == ["b", "c"]
    assert head.without("a").encode() == b"GET / HTTP/1.1\r\n\r\n"
