"""Ending processes, also those that fork faster than they can be found."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator

import pytest

from handrail.environments.shell_host import proc

from ...support import wait_until

# Every process starts two, until there are 512: enough to outrun a slow search, and too few to hurt when a test fails.
_BOMB = "b() { if (( $1 > 8 )); then exec sleep 1000; fi; sleep .02; b $(($1 + 1)) & b $(($1 + 1)) & wait; }; b 0"


@contextlib.contextmanager
def _started(command: str) -> Iterator[subprocess.Popen[bytes]]:
    """In a session of its own, of which nothing is left in the end."""
    with subprocess.Popen(["bash", "-c", command], start_new_session=True) as process:
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def _session(process: subprocess.Popen[bytes]) -> list[int]:
    return proc.in_session(process.pid, 0, proc.namespace())


@pytest.mark.parametrize("seconds", [0.2, 30])
def test_what_forks_faster_than_it_is_found_is_killed_all_the_same(seconds: float) -> None:
    with _started(_BOMB) as process:
        wait_until(lambda: len(_session(process)) > 8)

        def find_slowly() -> list[int]:
            found = _session(process)
            time.sleep(0.1)  # as on a busy machine: meanwhile each of them has forked
            return found

        proc.stop_and_kill(find_slowly, process.poll, seconds=seconds)
        wait_until(lambda: not _session(process))


def test_what_else_is_in_the_group_of_such_processes_goes_on() -> None:
    with _started(f"sleep 1000 & {_BOMB}") as process:
        wait_until(lambda: len(_session(process)) > 8)
        kept = next(pid for pid in proc.children(process.pid) if _is_nap(pid))

        def find_slowly() -> list[int]:
            found = [pid for pid in _session(process) if pid != kept]
            time.sleep(0.1)
            return found

        assert proc.stop_and_kill(find_slowly, process.poll, seconds=30)
        wait_until(lambda: (stat := proc.stat_of(kept)) is not None and stat.state == b"S")


def _is_nap(pid: int) -> bool:
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        return file.read().split(b"\0")[:2] == [b"sleep", b"1000"]
