"""Undo and redo of what real commands do."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from handrail.environments.shell_host import effect_takeover

from .random_changes import make_tree, random_call
from .watched_commands import Recorder, snapshot


@pytest.fixture(params=["by file", "by folder"])
def recorder(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorder]:
    """`by folder`: what `rm -rf` deletes is moved away whole, however small it is."""
    monkeypatch.setattr(effect_takeover, "_MIN_FILES", 1 if request.param == "by folder" else 100)
    make_tree(tmp_path / "work")
    made = Recorder(tmp_path / "journal", tmp_path / "work")
    yield made
    made.writer.close()


@pytest.mark.parametrize("seed", range(int(os.environ.get("UNDO_SEEDS", "4"))))
def test_whatever_calls_do_undoing_them_in_reverse_brings_back_every_state(recorder: Recorder, seed: int) -> None:
    choice = random.Random(seed)
    states, calls = [snapshot(recorder.work)], []
    for _ in range(8):
        calls.append(recorder.run(random_call(choice)))
        states.append(snapshot(recorder.work))
    for call in reversed(calls):
        _assert_equal(snapshot(recorder.work), states.pop(), f"before undoing call {call}")
        assert recorder.conflicts(call) == []
        assert recorder.undo(call).failed == []
    _assert_equal(snapshot(recorder.work), states.pop(), "at the beginning")


@pytest.mark.parametrize("seed", range(int(os.environ.get("UNDO_SEEDS", "3"))))
def test_a_redo_brings_back_what_was_undone(recorder: Recorder, seed: int) -> None:
    choice = random.Random(1000 + seed)
    for _ in range(5):
        before = snapshot(recorder.work)
        call = recorder.run(random_call(choice))
        after = snapshot(recorder.work)
        recorder.undo(call)
        _assert_equal(snapshot(recorder.work), before, f"after undoing call {call}")
        recorder.undo(recorder.number)
        _assert_equal(snapshot(recorder.work), after, f"after redoing call {call}")


def test_a_folder_that_was_made_anew_is_known_although_its_old_number_was_given_again(recorder: Recorder) -> None:
    before, inode = snapshot(recorder.work), (recorder.work / "dir").stat().st_ino
    moved, removed = recorder.run("mv dir old"), recorder.run("rm -r old")
    for number in range(20):  # so that the undo gets another number
        (recorder.work.parent / f"taken{number}").mkdir()
    assert recorder.undo(removed).failed == []
    # As the undo of a later call writes it, for another folder that had got the number.
    recorder.next_call().remade(inode, str(recorder.work / "a"))
    recorder.undo(moved)
    _assert_equal(snapshot(recorder.work), before, "after the undo")


def test_a_spawned_program_is_watched_after_it_shared_the_memory_of_its_parent(recorder: Recorder) -> None:
    before = snapshot(recorder.work)
    # Until its program runs, the child of posix_spawn opens files in its parent's memory.
    spawn = (
        "os.posix_spawn('/bin/sh', ['sh', '-c', 'echo x > a; rm -r dir; echo y > out2'], os.environ, file_actions=%s)"
    )
    opening = "[(os.POSIX_SPAWN_OPEN, 1, 'out', os.O_WRONLY | os.O_CREAT, 0o600)]"
    call = recorder.run(f'python3 -Sc "import os; os.waitpid({spawn % opening}, 0)"')
    assert (recorder.work / "a").read_text() == "x\n"
    assert recorder.undo(call).failed == []
    _assert_equal(snapshot(recorder.work), before, "after the undo")


def test_a_name_in_a_folder_that_was_swapped_for_another_is_found_there(recorder: Recorder) -> None:
    before = snapshot(recorder.work)
    call = recorder.run("exec 3>dir/new; mv dir old; mkdir dir; echo x > dir/x; ln -sfn old way; echo y > way/x; cd /")
    assert (recorder.work / "old" / "x").read_text() == "y\n"
    assert recorder.undo(call).failed == []
    _assert_equal(snapshot(recorder.work), before, "after the undo")


def _assert_equal(now: dict[str, object], then: dict[str, object], when: str) -> None:
    different = {path: (then.get(path), now.get(path)) for path in {*now, *then} if now.get(path) != then.get(path)}
    assert not different, when
