"""Commands that go through the proxy: real curl against servers on loopback."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import shlex
import socket
import subprocess
import threading
from pathlib import Path

import pytest

from handrail.egress.proxy import Program, Proxy
from handrail.errors import Denied
from handrail.protocols import Decision

from .conftest import MakeTask
from .servers import HOST, OTHER, Recorded

ON = {"contain": "on"}


def test_an_unlisted_host_is_asked_about_once_per_call_and_then_reached(make_task: MakeTask, plain: Recorded) -> None:
    task = make_task(ON, decision=Decision.ONCE)

    answer = task.run(f"for i in 1 2 3; do curl -sS http://{OTHER}:{plain.port}/$i >/dev/null; done")

    assert answer["exit_code"] == 0
    assert task.asked.texts == [f"curl wants {OTHER}:{plain.port}"]
    assert [path for _, path, _, _ in plain.requests] == ["/1", "/2", "/3"]
    task.run(f"curl -sS http://{OTHER}:{plain.port}/4")
    assert len(task.asked.requests) == 2, "a yes for once is for one call"


def test_a_denied_host_gets_nothing_and_the_model_is_told(make_task: MakeTask, plain: Recorded, tls: Recorded) -> None:
    task = make_task(ON)

    answer = task.run(f"curl -sS -d secret http://{OTHER}:{plain.port}/; curl -sSk https://{OTHER}:{tls.port}/")

    assert answer["exit_code"] != 0
    assert plain.requests == tls.requests == []
    assert f"curl wants {OTHER}:{plain.port}" in answer["note"]
    assert f"curl wants {OTHER}:{tls.port}" in answer["note"]


def test_nobody_to_ask_is_a_no(make_task: MakeTask, plain: Recorded) -> None:
    task = make_task(ON)
    task.app.runtime.approver = None

    answer = task.run(f"curl -sS http://{OTHER}:{plain.port}/")

    assert plain.requests == []
    assert "refused by the network policy" in answer["note"]
    assert "Not run" not in answer["note"], "the command did run"


@pytest.mark.parametrize(("decision", "asked_again"), [(Decision.SESSION, 0), (Decision.TASK, 0), (Decision.ONCE, 1)])
def test_a_longer_yes_holds_for_the_host_and_for_no_other(
    make_task: MakeTask, plain: Recorded, decision: Decision, asked_again: int
) -> None:
    task = make_task(ON, decision=decision)
    task.run(f"curl -sS http://{OTHER}:{plain.port}/")
    task.asked.decision = Decision.DENY

    task.run(f"curl -sS http://{OTHER}:{plain.port}/")
    assert len(task.asked.requests) == 1 + asked_again
    task.run(f"curl -sS http://{HOST}:{plain.port}/")
    assert task.asked.texts[-1] == f"curl wants {HOST}:{plain.port}"


def test_the_first_question_about_a_host_of_a_list_offers_the_list(make_task: MakeTask, plain: Recorded) -> None:
    registries = {"registry.npmjs.org": "127.0.0.1", "pypi.org": "127.0.0.1"}
    task = make_task({**ON, "resolve": registries}, decision=Decision.SESSION)

    task.run(f"curl -sS http://registry.npmjs.org:{plain.port}/ && curl -sS http://pypi.org:{plain.port}/")

    assert task.asked.texts == [f"curl wants registry.npmjs.org:{plain.port}"]
    assert "the whole list package-registries" in task.asked.requests[0].concerns[0].covers
    assert len(plain.requests) == 2


def test_after_a_yes_for_once_hosts_of_the_list_are_asked_one_by_one(make_task: MakeTask, plain: Recorded) -> None:
    registries = {"registry.npmjs.org": "127.0.0.1", "pypi.org": "127.0.0.1", "crates.io": "127.0.0.1"}
    task = make_task({**ON, "resolve": registries}, decision=Decision.ONCE)
    task.run(f"curl -sS http://registry.npmjs.org:{plain.port}/")
    task.asked.decision = Decision.SESSION

    task.run(f"curl -sS http://pypi.org:{plain.port}/; curl -sS http://pypi.org:{plain.port}/")
    task.run(f"curl -sS http://pypi.org:{plain.port}/; curl -sS http://crates.io:{plain.port}/")

    assert task.asked.texts == [f"curl wants {host}:{plain.port}" for host in registries]
    assert "list" not in task.asked.requests[1].concerns[0].covers


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest/",
        "http://2852039166/",
        "http://[::ffff:a9fe:a9fe]/",
        "http://metadata.google.internal/",
    ],
)
def test_cloud_metadata_is_refused_without_a_question(make_task: MakeTask, url: str) -> None:
    task = make_task(ON, decision=Decision.ALWAYS)

    answer = task.run(f"curl -sS -m 5 '{url}'")

    assert task.asked.requests == []
    assert "cloud metadata" in answer["output"] + answer["note"]


def test_a_name_that_leads_to_cloud_metadata_is_refused(make_task: MakeTask) -> None:
    task = make_task({**ON, "allow": (OTHER,), "resolve": {OTHER: "169.254.169.254"}}, decision=Decision.ALWAYS)

    assert "cloud metadata" in task.run(f"curl -sS -m 5 http://{OTHER}/")["output"]


def test_a_question_holds_the_connection_until_it_is_answered(make_task: MakeTask, plain: Recorded) -> None:
    task = make_task(ON, decision=Decision.ONCE)
    waiting, answered = threading.Event(), threading.Event()
    decide = task.asked.decide

    def slowly(request: object) -> object:
        waiting.set()
        assert answered.wait(20)
        return decide(request)  # type: ignore[arg-type]

    task.asked.decide = slowly  # type: ignore[assignment, method-assign]
    results: list[dict[str, object]] = []
    thread = threading.Thread(target=lambda: results.append(task.run(f"curl -sS http://{OTHER}:{plain.port}/held")))
    thread.start()
    assert waiting.wait(20)
    assert plain.requests == []
    answered.set()
    thread.join(20)

    assert results[0]["exit_code"] == 0
    assert [path for _, path, _, _ in plain.requests] == ["/held"]


def test_a_download_and_an_upload_arrive_whole(
    make_task: MakeTask, plain: Recorded, tls: Recorded, tmp_path: Path
) -> None:
    (tmp_path / "up").write_bytes(bytes(range(256)) * 20_000)
    task = make_task({**ON, "allow": (HOST,)})

    answer = task.run(
        f"curl -sSk https://{HOST}:{tls.port}/big/5000000 | wc -c; curl -sS http://{HOST}:{plain.port}/big/5000000 | wc -c;"
        f"curl -sS -T up http://{HOST}:{plain.port}/ -o /dev/null; curl -sSk -T - https://{HOST}:{tls.port}/ -o /dev/null < up;"
        f"curl -sS -T - http://{HOST}:{plain.port}/ -o /dev/null < up"
    )

    assert answer["output"].split() == ["5000000"] * 2
    assert plain.requests[-1][3] == plain.requests[-2][3] == tls.requests[-1][3] == (tmp_path / "up").read_bytes()


def test_connections_are_used_again(make_task: MakeTask, plain: Recorded) -> None:
    task = make_task({**ON, "allow": (HOST,)})

    answer = task.run(f"curl -sS -o /dev/null -w '%{{num_connects}} ' 'http://{HOST}:{plain.port}/?[1-20]'")

    assert sum(map(int, answer["output"].split())) == 1
    assert len(plain.requests) == 20


def test_whoever_does_not_know_the_token_is_turned_away(make_task: MakeTask, plain: Recorded) -> None:
    task = make_task({**ON, "allow": (HOST,)})
    proxy = task.run("echo $HTTP_PROXY")["output"].strip()
    port = int(proxy.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port)) as stranger:
        stranger.sendall(f"GET http://{HOST}:{plain.port}/ HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())
        answer = stranger.recv(1000)

    assert answer.startswith(b"HTTP/1.1 407")
    assert plain.requests == []


def test_the_program_of_another_task_is_turned_away(make_task: MakeTask, plain: Recorded) -> None:
    """A program that sends no token is known by its environment, which is that of its own task."""
    one, other = (make_task({"allow": (HOST,), "contain": "on"}) for _ in range(2))
    other.asked.decision = Decision.ONCE
    place = one.run("echo $HTTP_PROXY")["output"].strip().rpartition("@")[2]
    ask = f"printf 'GET http://{HOST}:{plain.port}/ HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n' >&3; head -1 <&3"
    connect = f"exec 3<>/dev/tcp/{place.replace(':', '/')}; {ask}"

    assert "407" in other.run(connect)["output"]
    assert "407" in one.run(f"env -i bash -c {shlex.quote(connect)}")["output"]
    assert plain.requests == []
    assert "200" in one.run(f"bash -c {shlex.quote(connect)}")["output"]


@pytest.mark.parametrize(
    "request_text",
    [
        "GET http://{host}/ HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n",
        "GET http://{host}/ HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 4\r\n",
        "GET http://{host}/ HTTP/1.1\r\nHost: x\r\nX : y\r\n",
        "GET http://{host}/ HTTP/1.1\r\nHost: x\r\n folded: y\r\n",
        "GET ftp://{host}/ HTTP/1.1\r\nHost: x\r\n",
        "GET /nowhere HTTP/1.1\r\nHost: x\r\n",
        "CONNECT a b:443 HTTP/1.1\r\n",
        "nonsense\r\n",
        "GET http://{host}/HTTP/1.1 HTTP/2.0\r\nHost: x\r\n",
        "GET http://{host}/ HTTP/1.1 \r\nHost: x\r\n",
        "PRI * HTTP/2.0\r\n",
    ],
)
def test_what_two_readers_could_read_differently_is_refused(
    make_task: MakeTask, plain: Recorded, request_text: str
) -> None:
    import base64

    task = make_task({**ON, "allow": (HOST,)})
    proxy = task.run("echo $HTTP_PROXY")["output"].strip()
    login, _, place = proxy.removeprefix("http://").partition("@")
    with socket.create_connection(("127.0.0.1", int(place.rpartition(":")[2]))) as client:
        text = request_text.format(host=f"{HOST}:{plain.port}")
        client.sendall(
            f"{text}Proxy-Authorization: Basic {base64.b64encode(login.encode()).decode()}\r\n\r\nabc".encode()
        )
        client.settimeout(20)
        answer = client.recv(1000)

    assert answer.startswith(b"HTTP/1.1 400"), answer
    assert plain.requests == []


def test_without_settings_commands_get_no_proxy(make_task: MakeTask) -> None:
    task = make_task()

    assert "handrail" not in task.run("env | grep -i _proxy")["output"]
    assert task.app.environments._networks is None


def test_nothing_is_left_when_the_task_is_closed(make_task: MakeTask) -> None:
    task = make_task(ON, {"api": {}})
    found = json.loads(json.dumps(task.run("echo $HTTP_PROXY $SSL_CERT_FILE")["output"])).split()
    bundle, port = Path(found[1]), int(found[0].rpartition(":")[2])
    assert bundle.is_file()

    task.app.environments.close("t")

    assert not bundle.exists()
    with pytest.raises(OSError):  # noqa: PT011  whatever a closed port gives
        socket.create_connection(("127.0.0.1", port), timeout=5)


def test_names_that_a_pattern_of_a_key_allows_do_not_take_a_listener_each_for_ever() -> None:
    async def check() -> None:
        proxy = Proxy(Nowhere())
        url = await proxy.start()
        before = len(os.listdir("/proc/self/fd"))
        places = [proxy.entrance((f"{number}.example.org", 443)) for number in range(300)]
        assert proxy.entrance(("299.example.org", 443)) == places[-1]
        for _ in range(3):  # those that were given up are cancelled, end, and close
            await asyncio.sleep(0)
        assert len(os.listdir("/proc/self/fd")) - before < 100
        for place in (url.rpartition("@")[2], places[-1]):
            socket.create_connection(place.split(":"), 10).close()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(places[0].split(":"), 10)
        await proxy.close()

    asyncio.run(check())


def test_the_proxy_serves_others_while_it_looks_for_the_program_that_gave_no_token(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    searching, served = threading.Event(), threading.Event()

    def search(*_: object, **__: object) -> list[str]:
        searching.set()
        assert served.wait(30)
        return []

    async def ask(place: str, login: str) -> bytes:
        reader, writer = await asyncio.open_connection(*place.split(":"))
        token = base64.b64encode(login.encode()).decode()
        field = f"Proxy-Authorization: Basic {token}\r\n" if login else ""
        writer.write(f"CONNECT {OTHER}:443 HTTP/1.1\r\n{field}\r\n".encode())
        answer = await reader.readline()
        writer.close()
        return answer

    async def check() -> None:
        proxy = Proxy(Nowhere())
        login, _, place = (await proxy.start()).removeprefix("http://").rpartition("@")
        stranger = asyncio.ensure_future(ask(place, ""))
        assert await asyncio.to_thread(searching.wait, 30)
        assert b"403" in await ask(place, login)
        served.set()
        assert b"407" in await stranger
        await proxy.close()

    monkeypatch.setattr("handrail.egress.proxy.processes_at", search)
    asyncio.run(asyncio.wait_for(check(), 60))


def test_a_process_is_known_by_its_token_although_another_one_has_the_same_socket() -> None:
    def ask(url: str) -> bytes:
        with socket.create_connection(url.rpartition("@")[2].split(":"), 10) as shared:
            # This process, which has no token, has a lower number, as the effect watcher does.
            fds = [shared.fileno()]
            with subprocess.Popen(["cat"], env={"HTTPS_PROXY": url}, stdin=subprocess.PIPE, pass_fds=fds):
                shared.sendall(f"CONNECT {OTHER}:443 HTTP/1.1\r\n\r\n".encode())
                return shared.recv(100)

    async def check() -> None:
        proxy = Proxy(Nowhere())
        assert b"403" in await asyncio.to_thread(ask, await proxy.start()), "not 407"
        await proxy.close()

    asyncio.run(asyncio.wait_for(check(), 60))


class Nowhere:
    """Lets nobody out."""

    async def addresses(self, host: str, port: int, program: Program) -> list[str]:
        raise Denied(f"{host}:{port}")

    async def misplaced(self, secret: str, host: str, port: int, program: Program) -> None:
        raise NotImplementedError

    def refuse(self, why: str) -> None:
        raise NotImplementedError
