"""Whose it is: a runtime that lives, one that is gone, and one that cannot be judged from here."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from handrail.base import own_process

_SAY = "from handrail.base import own_process; print(own_process.runtime_id(), flush=True); input()"


def test_a_runtime_is_gone_when_its_process_is() -> None:
    assert not own_process.has_exited(own_process.runtime_id())
    other = subprocess.Popen([sys.executable, "-c", _SAY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with other:
        assert other.stdout is not None
        name = other.stdout.readline().strip()
        assert not own_process.has_exited(name)
        other.kill()
    assert own_process.has_exited(name)


def test_a_process_that_has_got_the_same_pid_is_another_runtime() -> None:
    *rest, start = own_process.runtime_id().split("-")
    assert own_process.has_exited("-".join((*rest, str(int(start) - 1))))


@pytest.mark.parametrize("part", [0, 2], ids=["another machine", "another process namespace"])
def test_what_cannot_be_seen_from_here_is_not_judged(part: int) -> None:
    parts = own_process.runtime_id().split("-")
    parts[part] = "1234"
    parts[4] = "1"
    assert not own_process.has_exited("-".join(parts))


def test_nothing_outlives_the_start_of_its_machine() -> None:
    parts = own_process.runtime_id().split("-")
    parts[1] = "1234"
    assert own_process.has_exited("-".join(parts))


def test_the_process_is_in_the_name() -> None:
    assert own_process.pid_of(own_process.runtime_id()) == os.getpid()


@pytest.mark.parametrize("name", ["", "x", "a-b-c", "---", "0-0-0-0-0-x"])
def test_what_is_no_name_is_not_judged(name: str) -> None:
    assert not own_process.has_exited(name)


def test_only_root_judges_the_runtimes_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    *rest, start = own_process.runtime_id().split("-")
    dead = "-".join((*rest, str(int(start) - 1)))
    monkeypatch.setattr(os, "geteuid", lambda: 4321)
    assert not own_process.has_exited(dead)
