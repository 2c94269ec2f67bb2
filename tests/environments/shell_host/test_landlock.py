"""Local commands under Landlock, where there are no namespaces and bubblewrap is missing."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from handrail.environments.errors import EnvironmentStartError, SandboxUnavailable
from handrail.environments.local_environment import LocalEnvironment
from handrail.environments.sandbox import Mechanism, SandboxPolicy
from handrail.environments.shell_host import landlock, proc

from ...support import PYTHON, wait_until
from ..conftest import PATIENCE_SECONDS, is_running, text

LANDLOCK = SandboxPolicy(mechanism=Mechanism.LANDLOCK)

pytestmark = pytest.mark.skipif(
    landlock.abi() < landlock.OLDEST_NETWORK_ABI and "CI" not in os.environ,
    reason="the Landlock of this kernel is too old; a kernel from 6.7 on has what is needed",
)


@pytest.fixture
def held_back(work: Path) -> Iterator[LocalEnvironment]:
    with LocalEnvironment(str(work), sandbox=LANDLOCK) as environment:
        yield environment


def _run(environment: LocalEnvironment, command: str) -> str:
    return text(environment.execute(command, timeout=PATIENCE_SECONDS))


def _fails(environment: LocalEnvironment, command: str) -> bool:
    return environment.execute(command, timeout=PATIENCE_SECONDS).exit_code != 0


def test_it_stands_in_for_namespaces_and_does_not_count_as_isolated(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/proc/nowhere")
    monkeypatch.setattr("handrail.environments.sandbox.can_make_namespaces", lambda: False)
    with LocalEnvironment(str(work), env={"PATH": "/usr/bin:/bin"}, sandbox=SandboxPolicy()) as local:
        assert not local.isolated
        assert local.reaches_host
        assert not local.persistent
        assert _fails(local, "touch /usr/outside 2>/dev/null")
        assert _run(local, "touch inside && echo yes") == "yes\n"


def test_only_the_work_tree_can_be_written_to(held_back: LocalEnvironment, work: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("as it was")
    for harm in (
        f"echo x >{tmp_path}/file",
        f"echo x >>{tmp_path}/file",
        f": >{tmp_path}/file",
        f"truncate -s 0 {tmp_path}/file",
        f"rm {tmp_path}/file",
        f"mv {tmp_path}/file {work}/file",
        f"ln {tmp_path}/file {work}/link && echo x >{work}/link",
        f"mkdir {tmp_path}/folder",
        f"ln -s x {tmp_path}/link",
        f"mkfifo {tmp_path}/fifo",
        "touch /usr/outside",
        "touch /tmp/outside",
        "touch /dev/shm/outside",
    ):
        assert _fails(held_back, harm), harm
    assert (tmp_path / "file").read_text() == "as it was"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "work"]
    assert _run(held_back, "mkdir a && echo x >a/b && mv a/b c && rm -r a && cat c >/dev/null && echo yes") == "yes\n"


def test_keys_and_the_runtimes_own_files_cannot_be_read(
    work: Path, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    users = tmp_path / "user"
    (users / ".ssh").mkdir(parents=True)
    (users / ".ssh" / "id").write_text("private")
    (users / ".netrc").write_text("password")
    (users / "notes").write_text("public")
    (users / "way").symlink_to(".ssh")
    (home / "config.yaml").write_text("secret")
    monkeypatch.setenv("HOME", str(users))
    policy = SandboxPolicy(writable=(str(work), str(users / "notes")), mechanism=Mechanism.LANDLOCK)
    with LocalEnvironment(str(work), sandbox=policy) as local:
        for place in (users / ".ssh" / "id", users / "way" / "id", users / ".netrc", home / "config.yaml"):
            assert _fails(local, f"cat {place}"), place
        assert _run(local, f"cat {users}/notes") == "public"


def test_handrail_works_inside_though_it_cannot_read_its_configuration(work: Path, home: Path) -> None:
    (home / "config.yaml").write_text("terminal: {backends: {local: {sandbox: true}}}\n")
    (work / "notes").write_text("read me")
    with LocalEnvironment(str(work), env={"HANDRAIL_HOME": str(home)}, sandbox=LANDLOCK) as local:
        handrail = f"{PYTHON} -I -c 'from handrail.cli import main; main()'"
        assert "read me" in _run(local, f"{handrail} call read_file path=notes")


def test_the_temporary_folder_is_its_own_and_goes_with_it(held_back: LocalEnvironment) -> None:
    mark = Path(tempfile.gettempdir()) / f"handrail-mark-{os.getpid()}"
    mark.write_text("of somebody else")
    try:
        assert _fails(held_back, f"cat {mark}")
    finally:
        mark.unlink()
    place = Path(_run(held_back, 'f=$(mktemp) && echo kept >$f && echo "$f"').strip())
    assert place.read_text() == "kept\n"
    held_back.close()
    assert not place.parent.exists()


@pytest.mark.parametrize("network", [False, True])
def test_tcp_is_off_unless_it_is_allowed(work: Path, network: bool) -> None:
    policy = SandboxPolicy(network=network, mechanism=Mechanism.LANDLOCK)
    with socket.create_server(("127.0.0.1", 0)) as server, LocalEnvironment(str(work), sandbox=policy) as local:
        port = server.getsockname()[1]
        assert _fails(local, f"echo hi >/dev/tcp/127.0.0.1/{port}") is not network
        listen = "import socket; socket.create_server(('127.0.0.1', 0)).close()"
        assert _fails(local, f'{PYTHON} -c "{listen}"') is not network


def test_it_reaches_no_process_outside(held_back: LocalEnvironment) -> None:
    outside = subprocess.Popen(["sleep", "1000"], env={"HIDDEN": "word"})
    try:
        assert _fails(held_back, f"kill -9 {outside.pid}")
        assert _fails(held_back, f"cat /proc/{outside.pid}/environ")
        assert _fails(held_back, f"readlink /proc/{outside.pid}/fd/0")
        assert outside.poll() is None
    finally:
        outside.kill()
        outside.wait()


def test_what_it_starts_is_held_as_well(held_back: LocalEnvironment, tmp_path: Path) -> None:
    _run(held_back, f"(setsid bash -c 'echo x >{tmp_path}/escaped' &); exit")
    process = held_back.background(f"echo x >{tmp_path}/escaped || echo held")
    process.wait(PATIENCE_SECONDS)
    assert b"held" in process.read().data
    terminal = held_back.open_pty(f"tty && echo x >{tmp_path}/escaped || echo held")
    terminal.wait(PATIENCE_SECONDS)
    assert b"/dev/pts/" in terminal.read().data
    assert b"held" in terminal.read().data
    assert not (tmp_path / "escaped").exists()


def test_a_process_cannot_be_started_to_outlive_it(held_back: LocalEnvironment) -> None:
    with pytest.raises(EnvironmentStartError, match="cannot outlive"):
        held_back.background("sleep 1000", survives=True)


def test_a_landlock_that_knows_no_network_is_not_enough_to_cut_it(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landlock, "abi", lambda: 3)
    with pytest.raises(SandboxUnavailable, match="version 3, and 4 is needed to cut the network"):
        LocalEnvironment(str(work), sandbox=LANDLOCK).start()


def test_nothing_of_it_is_left_when_the_runtime_is_killed(work: Path) -> None:
    code = """
import os, sys
from handrail.environments.local_environment import LocalEnvironment
from handrail.environments.sandbox import Mechanism, SandboxPolicy
from handrail.environments.shell_host import proc
local = LocalEnvironment(sys.argv[1], sandbox=SandboxPolicy(mechanism=Mechanism.LANDLOCK))
local.execute("setsid -f sleep 2000 >/dev/null 2>&1; echo kept >$TMPDIR/file")
local.background("sleep 2001")
local.execute("echo $TMPDIR; sleep 2002", on_output=lambda b: print(b.decode().strip(), *proc.tree(os.getpid()), flush=True))
"""
    client = subprocess.Popen([sys.executable, "-c", code, str(work)], stdout=subprocess.PIPE)
    assert client.stdout is not None
    folder, *pids = client.stdout.readline().decode().split()
    client.stdout.close()
    assert Path(folder).is_dir()
    assert len(pids) > 6
    os.kill(client.pid, signal.SIGKILL)
    client.wait()
    wait_until(
        lambda: not any(is_running(int(pid)) for pid in pids),
        otherwise=lambda: str([proc.command_line(int(p)) for p in pids if is_running(int(p))]),
    )
    wait_until(lambda: not Path(folder).exists())
