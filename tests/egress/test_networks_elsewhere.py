"""Commands in a container, or on another host, have one way out: through a tunnel to the proxy of their task here."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from handrail.protocols import Decision

from ..services.apptainer import Apptainer
from ..services.docker import Docker
from ..services.podman import Podman
from ..services.sshd import Ssh
from ..support import wait_until
from .conftest import VALUE, MakeTask, Task
from .servers import HOST, OTHER, Recorded

CLIENT = """
import json, sys
from handrail import Handrail
from handrail.settings.schema import Config
from handrail.settings.services import SecretConfig
secrets = {"api": SecretConfig(source="environment:TESTS_VALUE", hosts=("api.example.test",))}
app = Handrail(Config(secrets=secrets), home=sys.argv[1])
app.register_task_env_overrides("t", **json.loads(sys.argv[2]))
print(json.loads(app.handle_function_call("terminal", {"command": "echo $SSL_CERT_FILE"}, task_id="t"))["output"], flush=True)
sys.stdin.read()
"""
FETCH = """
import os, sys, urllib.request
request = urllib.request.Request(sys.argv[1], headers={"Authorization": "Bearer " + os.environ.get("API", "none")})
print(urllib.request.urlopen(request, timeout=30).read().decode()[:2000])
"""
DIRECT = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 10)"

MakeFar = Callable[..., Task]


@pytest.fixture(params=["docker", "podman", "apptainer", "ssh"])
def make_far(request: pytest.FixtureRequest, make_task: MakeTask, monkeypatch: pytest.MonkeyPatch) -> MakeFar:
    service = request.getfixturevalue(f"{request.param}_service")
    if isinstance(service, Ssh):
        settings: dict[str, Any] = {"host": service.alias, "config_file": str(service.config)}
    else:
        assert isinstance(service, Docker | Podman | Apptainer)
        for name, value in service.env.items():
            monkeypatch.setenv(name, value)
        settings = {"image": service.image}

    def make(*arguments: Any, **more: Any) -> Task:
        task = make_task(*arguments, **more)
        task.app.register_task_env_overrides("t", backend=request.param, **settings)
        return task

    return make


def _fetch(task: Task, url: str) -> dict[str, Any]:
    return task.run(f"python3 -c '{FETCH}' {url}")


def test_a_key_is_put_in_on_the_way_and_the_value_never_gets_there(make_far: MakeFar, tls: Recorded) -> None:
    task = make_far({}, {"api": {"how": "bearer"}})

    answer = _fetch(task, f"https://{HOST}:{tls.port}/")

    assert answer["exit_code"] == 0, answer
    assert tls.requests[0][2]["Authorization"] == f"Bearer {VALUE}"
    assert "****" in answer["output"]
    everywhere = task.run('env; cat "$SSL_CERT_FILE" /proc/*/environ /proc/*/cmdline 2>/dev/null | tr "\\0" "\\n"')[
        "output"
    ]
    assert "BEGIN CERTIFICATE" in everywhere
    assert VALUE not in everywhere


def test_the_proxy_is_no_way_to_the_machine_itself(make_far: MakeFar, plain: Recorded) -> None:
    """Where nobody is asked about hosts, a container could not reach it otherwise."""
    task = make_far({"contain": "off"}, {"api": {}})
    for host in ("127.0.0.1", "localhost", "[::1]", "0.0.0.0", "127.1", "[::ffff:127.0.0.1]"):
        answer = task.run(f"no_proxy= NO_PROXY= API=x python3 -c '{FETCH}' http://{host}:{plain.port}/")
        assert answer["exit_code"] != 0, answer
    assert not plain.requests


def test_a_container_that_has_no_network_gets_none_with_a_key(
    docker_service: Docker, make_task: MakeTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in docker_service.env.items():
        monkeypatch.setenv(name, value)
    task = make_task({}, {"api": {}})
    task.app.register_task_env_overrides("t", backend="docker", image=docker_service.image, network="none")
    assert "PROXY" not in task.run("env")["output"]


def test_a_host_that_is_not_listed_is_asked_about(make_far: MakeFar, tls: Recorded, plain: Recorded) -> None:
    task = make_far({"contain": "on", "allow": (HOST,)}, decision=Decision.DENY)

    assert _fetch(task, f"http://{OTHER}:{plain.port}/")["exit_code"] != 0
    assert not plain.requests
    assert [text.split(" ", 2)[2] for text in task.asked.texts] == [f"wants {OTHER}:{plain.port}"]

    task.asked.decision = Decision.ONCE
    answer = _fetch(task, f"http://{OTHER}:{plain.port}/there")
    assert (answer["exit_code"], plain.requests[0][1]) == (0, "/there")


@pytest.mark.parametrize("kind", ["docker", "podman", "apptainer"])
def test_a_container_has_no_other_way_out(
    kind: str, make_task: MakeTask, plain: Recorded, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = request.getfixturevalue(f"{kind}_service")
    for name, value in service.env.items():
        monkeypatch.setenv(name, value)
    task = make_task({"contain": "on"}, decision=Decision.ONCE)
    task.app.register_task_env_overrides("t", backend=kind, image=service.image)

    assert task.run(f"python3 -c '{DIRECT}' 127.0.0.1 {plain.port}")["exit_code"] != 0
    links = task.run("cat /proc/net/dev")["output"]
    assert {line.split(":")[0].strip() for line in links.splitlines()[2:]} <= {"lo", "tunl0", "sit0", "ip6tnl0"}


@pytest.mark.parametrize("how", ["on", "profile"])
def test_a_host_has_no_other_way_out(how: str, make_task: MakeTask, ssh_service: Ssh, plain: Recorded) -> None:
    """It has a network of its own, which commands do not get at: the kernel there holds their connections."""
    task = make_task({"contain": "on" if how == "on" else "auto", "allow": (HOST,)}, decision=Decision.DENY)
    given = {"host": ssh_service.alias, "config_file": str(ssh_service.config)}
    task.app.register_task_env_overrides(
        "t", backend="ssh", **given, **({"ssh_profile": "contained"} if how != "on" else {})
    )

    answer = task.run(f"python3 -c '{DIRECT}' 127.0.0.1 {plain.port}")
    assert answer["exit_code"] != 0
    assert len(task.asked.requests) == 1, answer
    looked_up = task.run("python3 -c 'import socket; socket.getaddrinfo(\"other.example.test\", 80)'")
    assert looked_up["exit_code"] != 0
    assert _fetch(task, f"http://{HOST}:{plain.port}/")["exit_code"] == 0

    task.asked.decision = Decision.ONCE
    assert task.run(f"python3 -c '{DIRECT}' 127.0.0.1 {plain.port}")["exit_code"] == 0


def test_large_and_many_transfers_arrive_whole(make_far: MakeFar, plain: Recorded) -> None:
    task = make_far({"contain": "on", "allow": (HOST,)})
    program = """
import threading, urllib.request
from concurrent.futures import ThreadPoolExecutor
stuck = urllib.request.urlopen(URL + "/big/30000000")   # which nobody reads holds up no other
def size(number):
    return len(urllib.request.urlopen(URL + "/big/%d" % (number * 100001)).read()) == number * 100001
with ThreadPoolExecutor(10) as pool:
    print(all(pool.map(size, range(40))), len(stuck.read()))
"""
    answer = task.run(f"python3 -c '{program}'".replace("URL", f'"http://{HOST}:{plain.port}"'))
    assert answer["output"].strip() == "True 30000000", answer


def test_a_killed_tunnel_is_opened_again(make_far: MakeFar, tls: Recorded) -> None:
    task = make_far({}, {"api": {"how": "bearer"}})
    assert _fetch(task, f"https://{HOST}:{tls.port}/")["exit_code"] == 0
    task.run("pkill -TERM handrail-tunnel; while pgrep handrail-tunnel; do sleep 0.05; done")
    assert _fetch(task, f"https://{HOST}:{tls.port}/")["exit_code"] == 0


def test_a_task_can_move_there_and_back(ssh_service: Ssh, make_task: MakeTask, tls: Recorded, tmp_path: Path) -> None:
    task = make_task({}, {"api": {"how": "bearer"}})
    there = {"backend": "ssh", "host": ssh_service.alias, "config_file": str(ssh_service.config)}
    for place in ({"cwd": str(tmp_path)}, there, {"cwd": str(tmp_path)}):
        task.app.register_task_env_overrides("t", **place)
        assert _fetch(task, f"https://{HOST}:{tls.port}/")["exit_code"] == 0
    assert len(tls.requests) == 3


def test_what_was_written_on_a_host_goes_with_the_task(ssh_service: Ssh, make_task: MakeTask) -> None:
    task = make_task({}, {"api": {"how": "bearer"}})
    task.app.register_task_env_overrides(
        "t", backend="ssh", host=ssh_service.alias, config_file=str(ssh_service.config)
    )
    path = Path(task.run("echo $SSL_CERT_FILE")["output"].strip())
    assert path.exists()
    task.app.close()
    assert not path.exists()


def test_a_killed_runtime_leaves_no_tunnel_and_no_file(ssh_service: Ssh, tmp_path: Path) -> None:
    there = json.dumps({"backend": "ssh", "host": ssh_service.alias, "config_file": str(ssh_service.config)})
    words = [sys.executable, "-c", CLIENT, str(tmp_path / "home"), there]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as client:
        assert client.stdout is not None
        path = Path(client.stdout.readline().strip())
        assert path.exists()
        client.kill()
    wait_until(lambda: not path.exists())
