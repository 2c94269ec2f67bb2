"""A shell whose pipes are in this process though it runs in a container: what is taken over, from whom, and what is lost."""

from __future__ import annotations

import os
import resource
import select
import signal
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from handrail.environments.base import RestartReason, ShellState
from handrail.environments.errors import EnvironmentLost
from handrail.environments.live_environment import LiveEnvironment
from handrail.environments.shell_host import live_shell, wire
from handrail.environments.shell_host.connection import Lost, output_pipe
from handrail.environments.shell_host.live_shell import LiveShell
from handrail.environments.transport import direct_container_shell
from handrail.environments.transport.channel import Transport
from handrail.environments.transport.direct_container_shell import NearConnection
from handrail.environments.transport.link import Link
from handrail.environments.transport.session import Session

from ...support import wait_until
from ..conftest import PATIENCE_SECONDS, is_running, text


class Near(LiveEnvironment):
    name = "near"

    def __init__(self, *prefix: str, python: str = sys.executable) -> None:
        super().__init__()
        self._prefix, self._python = prefix, python

    def _connect(self, state: bytes | None) -> Link:
        transport = Transport(
            argv=lambda words: [*self._prefix, *words], where="the box", python=self._python, is_near=True
        )
        return Session(transport, env={"PATH": os.environ["PATH"]}, cwd="/", state=state)

    @property
    def shell(self) -> LiveShell | None:
        self.start()
        assert isinstance(self._link, Session)
        return self._link._near

    @property
    def line(self) -> NearConnection:
        assert self.shell is not None
        assert isinstance(self.shell.line, NearConnection)
        return self.shell.line

    def run(self, command: str) -> str:
        return text(self.execute(command, timeout=PATIENCE_SECONDS))


@pytest.fixture
def there() -> Iterator[Near]:
    with Near() as environment:
        yield environment


def test_commands_jobs_and_files_go_on_beside_each_other(there: Near, tmp_path: Path) -> None:
    there.execute(f"cd {tmp_path}; X=kept; f() {{ echo $X; }}", timeout=PATIENCE_SECONDS)
    job = there.background("f; pwd")  # it begins with the state of the last command
    job.wait(PATIENCE_SECONDS)
    assert job.read().data.decode() == f"kept\n{tmp_path}\n"
    result = there.execute("sleep 1000 & echo $!", timeout=PATIENCE_SECONDS)
    (left,) = result.left_running
    assert left.pid == int(text(result))
    assert [one.pid for one in there.left_running()] == [left.pid]
    there.adopt(left).kill()
    assert not is_running(left.pid)
    there.upload(__file__, "copy")
    assert there.run("cat copy") == Path(__file__).read_text()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be another user")
def test_a_shell_of_another_user_has_its_pipes_here_too() -> None:
    other = Near("setpriv", "--reuid=54321", "--regid=54321", "--clear-groups", python="/usr/bin/python3")
    with other as shell:
        assert shell.run("id -u; cat /proc/sys/kernel/ostype") == "54321\nLinux\n"
        # It holds the output: the next command has another pipe, which is made here.
        left = shell.execute("sleep 1000 & echo $!", timeout=PATIENCE_SECONDS)
        assert [one.pid for one in left.left_running] == [int(text(left))]
        assert shell.run("echo on") == "on\n"
        assert shell.execute("exit 3", timeout=PATIENCE_SECONDS).exit_code == 3
        assert text(shell.execute("cat", stdin=b"given", timeout=PATIENCE_SECONDS)) == "given"
        assert isinstance(shell.line, NearConnection)


def test_who_may_not_look_at_a_process_is_told_where_it_is(there: Near, tmp_path: Path) -> None:
    assert there.line._can_look
    there.line._can_look = False
    assert there.execute(f"cd {tmp_path}", timeout=PATIENCE_SECONDS).cwd == str(tmp_path)


@pytest.mark.parametrize("problem", [PermissionError(13, "no"), ValueError("it is no pipe")])
def test_pipes_that_cannot_be_opened_here_are_given_back(monkeypatch: pytest.MonkeyPatch, problem: Exception) -> None:
    def refuse(pipe: int, access: int) -> int:
        raise problem

    monkeypatch.setattr(direct_container_shell, "_own", refuse)
    with Near() as shell:
        assert shell.shell is None
        assert shell.run("cd /usr; pwd") == "/usr\n"
        assert shell.execute("exit 3", timeout=PATIENCE_SECONDS).exit_code == 3
        assert shell.run("pwd") == "/usr\n"


def test_a_clock_of_another_machine_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct_container_shell, "_CLOCK_SECONDS", -1.0)
    with Near() as shell:
        assert shell.shell is None
        assert shell.run("echo in") == "in\n"


def test_where_descriptors_run_short_there_are_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (2, 1024))
    with Near() as shell:
        assert shell.shell is None
        assert shell.run("echo in") == "in\n"


def test_a_kernel_that_lists_no_children_is_no_matter(there: Near) -> None:
    os.close(there.line._family_file)
    there.line._family_file = -1
    result = there.execute("sleep 1000 & echo $!", timeout=PATIENCE_SECONDS)
    assert [left.pid for left in result.left_running] == [int(text(result))]


def _saved(there: Near) -> None:
    """Until the state of the last command has been sent here."""
    poll = select.poll()
    poll.register(there.line.fileno(), select.POLLIN)
    wait_until(lambda: bool(poll.poll(0)))


@pytest.mark.parametrize("is_busy", [False, True])
def test_a_keeper_that_was_killed_is_replaced(there: Near, is_busy: bool) -> None:
    there.run("cd /usr; X=kept")
    _saved(there)
    first = there.line.keeper
    if is_busy:
        assert there.execute("kill -9 $PPID; sleep 1000", timeout=PATIENCE_SECONDS).exit_code == 137
    else:
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: not is_running(first))
    result = there.execute("pwd; echo $X", timeout=PATIENCE_SECONDS)
    assert text(result) == "/usr\nkept\n"
    assert there.line.keeper != first
    assert is_busy or (result.restarted is not None and result.restarted.reason is RestartReason.KEEPER)


def test_a_keeper_that_hangs_holds_up_nobody(there: Near, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_shell, "KILL_SECONDS", 0.2)
    keeper = there.line.keeper
    os.kill(keeper, signal.SIGSTOP)
    result = there.execute("sleep 1000", timeout=0.1)
    assert (result.exit_code, result.timed_out) == (124, True)
    assert not is_running(keeper)
    assert there.run("echo in") == "in\n"


def test_what_was_known_is_there_again_when_all_of_it_was_lost(there: Near) -> None:
    there.run("cd /usr; X=kept")
    _saved(there)
    there.run("true")
    assert isinstance(there._link, Session)
    channel: Any = there._link._channel
    with pytest.raises(EnvironmentLost):
        there.execute(f"kill -9 {channel._process.pid}; sleep 1000", timeout=PATIENCE_SECONDS)
    result = there.execute("pwd; echo $X", timeout=PATIENCE_SECONDS)
    assert text(result) == "/usr\nkept\n"
    assert result.restarted == (RestartReason.LOST, ShellState.OLDER)


# What a container that means harm could send


@pytest.fixture
def handed() -> Iterator[tuple[dict[str, Any], list[int], socket.socket]]:
    """Facts, descriptors, and the keeper's end."""
    ours, keeper = wire.packet_pair()
    go, done = os.pipe(), os.pipe()
    text_file, place = wire.memory_file("text"), os.open("/proc/self", os.O_PATH)
    facts = {
        "op": "born", "keeper": 1, "bash": 1, "bash_start": 0, "text": 0, "stdin": 0, "cwd": "/", "state": "clean",
        "ended": None, "now": time.monotonic(), "where": os.getcwd(),
    }  # fmt: skip
    with keeper:
        yield facts, [ours.detach(), output_pipe(), text_file, go[1], done[0], place], keeper
    os.close(go[0])
    os.close(done[1])


@pytest.mark.parametrize(("instead_of", "why"), [(4, "it is no pipe"), (2, "it is no file")])
def test_what_could_make_us_wait_is_not_taken(
    handed: tuple[dict[str, Any], list[int], socket.socket], instead_of: int, why: str
) -> None:
    facts, fds, _ = handed
    with open("/dev/null", "rb") as null:
        os.dup2(null.fileno(), fds[instead_of])
    with pytest.raises(ValueError, match=why):
        NearConnection(facts, fds, lambda _: None)
    for fd in fds:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(fd)


@pytest.mark.parametrize(
    "packet", [b"not json", b"[]", b"{}", b'{"op": "born"}', b'{"op": "saved"}', b'{"op": "fatal"}', b"7"]
)
def test_what_makes_no_sense_ends_the_line(
    handed: tuple[dict[str, Any], list[int], socket.socket], packet: bytes
) -> None:
    facts, fds, keeper = handed
    line = NearConnection(facts, fds, lambda _: None)
    read, write = os.pipe()
    wire.send_with(keeper, packet, [write])
    os.close(write)
    with pytest.raises(Lost, match="makes no sense"):
        line.hear()
    assert os.read(read, 1) == b""  # what came with it is closed
    os.close(read)
    line.let_go()


def test_nobody_waits_for_a_bash_that_does_not_read(
    handed: tuple[dict[str, Any], list[int], socket.socket],
) -> None:
    facts, fds, _ = handed
    line = NearConnection(facts, fds, lambda _: None)
    line.give(b"S" * (1 << 20))  # as much as there is room for
    with pytest.raises(Lost, match="nobody there reads"):
        line.give(b"S")
    line.let_go()


def test_a_state_that_is_too_large_is_left(handed: tuple[dict[str, Any], list[int], socket.socket]) -> None:
    facts, fds, keeper = handed
    line = NearConnection(facts, fds, lambda _: None)
    heard: list[bytes] = []
    line.on_saved = heard.append
    for size in (1 << 40, 3):
        file = wire.memory_file("state")
        os.truncate(file, size)
        wire.send(keeper, {"op": "saved"}, [file])
        os.close(file)
    line.hear()
    assert heard == [b"\0\0\0"]
    line.let_go()
