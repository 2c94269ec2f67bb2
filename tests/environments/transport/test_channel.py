"""What frames go over: signs of life, a window, noise at the start."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from handrail.environments.errors import EnvironmentLost, EnvironmentStartError
from handrail.environments.live_environment import LiveEnvironment
from handrail.environments.shell_host import proc
from handrail.environments.transport import channel
from handrail.environments.transport.channel import PipeChannel, Transport
from handrail.environments.transport.link import Fatal, Link
from handrail.environments.transport.session import Session, keep_alive

from ...support import takes_less_than, wait_until
from ..conftest import PATIENCE_SECONDS, is_running, text

SILENCE = 2.4
WINDOW = 1 << 20


class DeafPipe(PipeChannel):
    """One that says nothing of a reader who is slow, as the streams of some SDKs do: whatever comes is taken at once."""

    window = WINDOW

    def __init__(self, transport: Transport) -> None:
        super().__init__(transport)
        self.unread = b""
        self.most_unread = 0

    def receive(self, end: float | None) -> bytes:
        while self._incoming.poll(5 if self.unread else None):
            self.unread += super().receive(end)
        self.most_unread = max(self.most_unread, len(self.unread))
        data, self.unread = self.unread[:65536], self.unread[65536:]
        return data


class Windowed(Transport):
    def open(self) -> DeafPipe:
        return DeafPipe(self)


class There(LiveEnvironment):
    name = "there"

    def __init__(self, *prefix: str, kind: type[Transport] = Transport, client_timeout: float = 0.0) -> None:
        super().__init__()
        self._prefix, self._kind, self._client_timeout = prefix, kind, client_timeout

    def connect(self, state: bytes | None) -> Link:
        transport = self._kind(
            argv=lambda words: [*self._prefix, *words],
            where="the box",
            python=sys.executable,
            client_timeout=self._client_timeout,
        )
        return Session(transport, env={}, cwd="/", state=state)

    @property
    def channel(self) -> PipeChannel:
        assert isinstance(self._link, Session)
        assert isinstance(self._link._channel, PipeChannel)
        return self._link._channel


@pytest.fixture
def there() -> Iterator[There]:
    with There(client_timeout=SILENCE) as environment:
        yield environment


def test_a_shell_that_nobody_uses_is_kept_by_signs_of_life(there: There) -> None:
    there.execute("BORN=$$", timeout=PATIENCE_SECONDS)
    end = time.monotonic() + 1.5 * SILENCE
    wait_until(lambda: time.monotonic() > end)
    result = there.execute("[ $BORN = $$ ] && echo same", timeout=PATIENCE_SECONDS)
    assert (text(result), result.restarted) == ("same\n", None)


def test_a_long_command_without_output_is_kept_by_signs_of_life(there: There) -> None:
    assert text(there.execute(f"sleep {1.5 * SILENCE}; echo done", timeout=PATIENCE_SECONDS)) == "done\n"


@pytest.mark.parametrize("state", ["idle", "running"])
def test_a_client_that_is_silent_is_taken_for_gone(there: There, state: str) -> None:
    left = int(text(there.execute("sleep 1000 >/dev/null 2>&1 & echo $!", timeout=PATIENCE_SECONDS)))
    assert is_running(left)
    assert isinstance(there._link, Session)
    keep_alive.remove(there._link._confirm)
    if state == "running":
        with pytest.raises(EnvironmentLost):
            there.execute("sleep 1001", timeout=PATIENCE_SECONDS)
    wait_until(lambda: not is_running(left))
    if state == "idle":
        with pytest.raises(EnvironmentLost):
            there.execute("true", timeout=PATIENCE_SECONDS)
    assert text(there.execute("echo again", timeout=PATIENCE_SECONDS)) == "again\n"


def test_a_stopped_runtime_is_missed_too(there: There) -> None:
    """Not killed: its connection is open, and nobody reads or writes it."""
    there.execute("true", timeout=PATIENCE_SECONDS)
    child = os.fork()
    if child == 0:
        try:
            other = There(client_timeout=SILENCE)
            other.execute("true")
            os.kill(os.getpid(), signal.SIGSTOP)
        finally:
            os._exit(0)
    try:
        os.waitpid(child, os.WUNTRACED)
        wait_until(lambda: not proc.tree(child), otherwise=lambda: f"still there: {proc.tree(child)}")
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert text(there.execute("echo mine", timeout=PATIENCE_SECONDS)) == "mine\n"


def test_the_thread_ends_with_the_last_who_needs_it() -> None:
    with There(client_timeout=SILENCE), There(client_timeout=SILENCE):
        assert keep_alive._thread is not None
    wait_until(lambda: keep_alive._thread is None)


def test_no_more_is_on_its_way_than_the_window() -> None:
    with There(kind=Windowed) as there:
        slow = iter(range(10))

        def on_output(_: bytes) -> None:
            if next(slow, None) is not None:
                time.sleep(0.05)  # the reader is slow for a while, which is what this is about

        result = there.execute("head -c 20000000 /dev/zero", on_output=on_output, timeout=PATIENCE_SECONDS)
        assert result.output.total_bytes == 20_000_000
        assert isinstance(there.channel, DeafPipe)
        assert WINDOW // 2 < there.channel.most_unread <= WINDOW


def test_a_full_window_does_not_keep_a_cancel_or_a_time_limit_away() -> None:
    with There(kind=Windowed) as there, takes_less_than(PATIENCE_SECONDS):
        result = there.execute("cat /dev/zero", timeout=0.5)
        assert result.timed_out
        assert text(there.execute("echo next", timeout=PATIENCE_SECONDS)) == "next\n"


def test_what_comes_before_the_first_word_is_skipped() -> None:
    with There("sh", "-c", 'seq 5000; printf "\\0hand"; exec "$@"', "sh") as there:
        assert text(there.execute("echo hi", timeout=PATIENCE_SECONDS)) == "hi\n"


def test_endless_noise_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel, "END_SECONDS", 0.2)
    with takes_less_than(30), pytest.raises(EnvironmentStartError, match="prints too much before a command can run"):
        There("sh", "-c", "exec cat /dev/zero", "sh").start()


def test_what_was_said_instead_is_shown() -> None:
    with pytest.raises(EnvironmentStartError, match="ended with code 3: this account is closed"):
        There("sh", "-c", "echo this account is closed; exit 3", "sh").start()


def test_a_working_directory_that_must_be_there(tmp_path: Path) -> None:
    transport = Transport(argv=list, where="the box", python=sys.executable)
    missing = str(tmp_path / "nowhere" / "x")
    with pytest.raises(Fatal, match=f"the working directory {missing} does not exist"):
        Session(transport, env={}, cwd=missing, must_have_cwd=True)
    link = Session(transport, env={}, cwd=missing)
    link.close()
    assert link.cwd == str(tmp_path)
