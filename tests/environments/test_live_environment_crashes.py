"""Whatever is killed while commands change files: after recovery each call has happened wholly or not at all, and once."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from handrail.environments.errors import EnvironmentLost, EnvironmentStartError
from handrail.environments.local_environment import LocalEnvironment
from handrail.environments.shell_host import proc
from handrail.environments.shell_host.journal_undo import recover

from ..support import wait_until
from .conftest import PATIENCE_SECONDS, is_running
from .shell_host.random_changes import make_tree, random_call
from .shell_host.watched_commands import Recorder, snapshot

# `make soak` asks for more.
_KILLS = int(os.environ.get("EFFECT_KILLS", "14"))
_SEEDS = int(os.environ.get("EFFECT_SEEDS", "3"))
_FIRST = int(os.environ.get("FIRST_SEED", "0"))

_RUNTIME = """
import json, sys
from handrail.environments.local_environment import LocalEnvironment
work, commands, first = sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3])
with LocalEnvironment(work) as shell:
    shell.start()
    print("begun", flush=True)
    for number, command in enumerate(commands, first):
        shell.execute(command, call=number)
        print(number, flush=True)
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("HANDRAIL_HOME", str(tmp_path / "home"))
    yield tmp_path / "home"
    recover(str(tmp_path / "home" / "state" / "journal"))  # as the next start does
    assert list((tmp_path / "home").rglob("*.open")) == []


@pytest.fixture
def work(tmp_path: Path) -> Path:
    make_tree(tmp_path / "work")
    return tmp_path / "work"


def states_of(commands: list[str], folder: Path) -> list[dict[str, Any]]:
    """What a tree is like before, between and after the commands when nothing is killed. With a journal: that it keeps a deleted
    file makes a difference for programs that count the names of a file."""
    make_tree(folder)
    recorder = Recorder(folder.with_name("kept"), folder)
    found = [_contents(folder)]
    for command in commands:
        recorder.run(command)
        found.append(_contents(folder))
    recorder.writer.close()
    return found


def _random() -> random.Random:
    """Another one each time, unless a seed is given. pytest shows it when a test fails."""
    seed = _FIRST or random.randrange(1, 10**9)
    print("FIRST_SEED", seed)
    return random.Random(seed)


def _different(now: dict[str, Any], *states: dict[str, Any]) -> list[dict[str, Any]]:
    """By state, what is otherwise, as (now, then). Empty if one of them is the present one."""
    found = [
        {path: (now.get(path), then.get(path)) for path in {*now, *then} if now.get(path) != then.get(path)}
        for then in states
    ]
    return found if all(found) else []


def _contents(folder: Path) -> dict[str, Any]:
    """Without times and places, which differ between two runs."""
    found = snapshot(folder)
    groups = [[os.path.relpath(path, folder) for path in group] for group in found.pop("groups")]
    entries = {os.path.relpath(path, folder): (*one[:3], *one[4:]) for path, one in found.items()}
    return {**entries, "groups": sorted(groups)}


@pytest.mark.parametrize("seed", range(_FIRST, _FIRST + _SEEDS))
def test_whatever_calls_do_in_a_live_shell_undoing_them_brings_back_every_state(
    work: Path, home: Path, seed: int
) -> None:
    choice = random.Random(seed)
    with LocalEnvironment(str(work)) as shell:
        states = [snapshot(work)]
        for number in range(1, 11):
            shell.execute(random_call(choice), call=number, timeout=PATIENCE_SECONDS)
            states.append(snapshot(work))
        for number in range(10, 0, -1):
            assert snapshot(work) == states[number], f"before undoing call {number}"
            answer = shell.call_effects("undo", call=number, number=21 - number)
            nothing = answer["status"] == "refused" and states[number] == states[number - 1]
            assert nothing or (answer["status"], answer["failed"]) == ("undone", []), answer
        assert snapshot(work) == states[0]


def test_a_watcher_killed_at_any_moment_leaves_no_call_half_done(work: Path, home: Path, tmp_path: Path) -> None:
    choice = _random()
    commands = [random_call(choice) for _ in range(_KILLS)]
    states = states_of(commands, tmp_path / "reference")
    number = 0
    with LocalEnvironment(str(work)) as shell:
        for step, command in enumerate(commands):
            is_killed, end = True, time.monotonic() + PATIENCE_SECONDS
            while time.monotonic() < end:  # that the watcher was lost may be seen in a later command only
                number += 1
                shell.start()
                timer = threading.Timer(choice.uniform(0, 0.06), _kill_watchers)
                if is_killed:
                    timer.start()
                try:
                    shell.execute(command, call=number, timeout=PATIENCE_SECONDS)
                except (EnvironmentLost, EnvironmentStartError):
                    pass
                finally:
                    timer.cancel()
                if is_killed:
                    timer.join()
                    _kill_watchers()  # the command was faster
                    wait_until(lambda: not _watchers())
                recovered = recover(str(home / "state" / "journal"))
                now = _contents(work)
                assert not _different(now, states[step], states[step + 1]), f"{command}: {recovered}"
                assert [one["failed"] for one in recovered] in ([], [[]])
                if now == states[step + 1]:
                    break
                is_killed = False
            assert now == states[step + 1], command


def test_a_runtime_killed_at_any_moment_leaves_no_call_half_done(work: Path, home: Path, tmp_path: Path) -> None:
    choice = _random()
    commands = [random_call(choice) for _ in range(max(6, _KILLS // 2))]
    states = states_of(commands, tmp_path / "reference")
    done, first = 0, 1
    while done < len(commands):
        words = [sys.executable, "-c", _RUNTIME, str(work), json.dumps(commands[done : done + 4]), str(first)]
        with subprocess.Popen(words, stdout=subprocess.PIPE) as runtime:
            assert runtime.stdout is not None
            assert runtime.stdout.readline() == b"begun\n"
            below = list(proc.tree(runtime.pid))
            # In the middle of a call that is chosen, however long calls take here: a busy machine would not come to the first.
            start, told = time.monotonic(), 0
            for _ in range(choice.randrange(4)):
                told += bool(runtime.stdout.readline())
            seconds_per_call = (time.monotonic() - start) / told if told else 0.1
            killer = threading.Timer(choice.uniform(0, seconds_per_call), runtime.kill)
            killer.start()
            told += len(runtime.stdout.readlines())
            killer.cancel()
        below = [pid for pid in below if is_running(pid)]
        wait_until(lambda below=below: not any(map(is_running, below)))
        recover(str(home / "state" / "journal"))
        now = _contents(work)
        # The last call may have ended without its runtime having told so.
        assert not _different(now, states[done + told], states[min(done + told + 1, len(commands))]), commands[done:]
        done, first = states.index(now, done + told), first + 10
    shutil.rmtree(tmp_path / "reference", ignore_errors=True)  # a folder of it may be closed to this user


def _watchers() -> list[int]:
    """The processes above a fork server, except that of the tests without protection."""
    found = []
    for pid in proc.tree(os.getpid()):
        name, *below = (proc.command_line(process) for process in (pid, *proc.children(pid)))
        if name == "handrail-fork" and name in below:
            found.append(pid)
    return found


def _kill_watchers() -> None:
    proc.signal_each(_watchers(), signal.SIGKILL)
