"""Undo and redo of what real commands do."""

from __future__ import annotations

import ctypes
import os
import random
import subprocess
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from handrail.environments.shell_host import call_effects, effect_takeover
from handrail.environments.shell_host.journal_undo import recover

from .random_changes import make_tree, random_call
from .watched_commands import NOBODY, Recorder, snapshot, watched

_PR_SET_DUMPABLE = 4
# `make soak` asks for more.
_FIRST, _SEEDS = int(os.environ.get("FIRST_SEED", "0")), int(os.environ.get("UNDO_SEEDS", "4"))


@pytest.fixture(params=["by file", "by folder"])
def recorder(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorder]:
    """`by folder`: what `rm -rf` deletes is moved away whole, however small it is."""
    monkeypatch.setattr(effect_takeover, "_MIN_FILES", 1 if request.param == "by folder" else 100)
    make_tree(tmp_path / "work")
    made = Recorder(tmp_path / "journal", tmp_path / "work")
    yield made
    made.writer.close()


@pytest.mark.parametrize("seed", range(_FIRST, _FIRST + _SEEDS))
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


@pytest.mark.parametrize("seed", range(_FIRST, _FIRST + _SEEDS))
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


def test_what_was_to_be_made_through_links_in_a_circle_troubles_no_undo(recorder: Recorder) -> None:
    recorder.run("ln -s b other; rm b")
    before = snapshot(recorder.work)
    call = recorder.run("ln -s other/p b; echo x > other; true")
    assert recorder.undo(call).failed == []
    _assert_equal(snapshot(recorder.work), before, "after the undo")


def test_a_removal_that_had_failed_and_was_undone_is_no_conflict_for_earlier_calls(recorder: Recorder) -> None:
    first, later = recorder.run("echo x > a"), recorder.run("rmdir a; true")
    assert recorder.undo(later).failed == []
    assert recorder.conflicts(first) == []


def test_hard_links_in_a_new_folder_are_no_conflict_for_the_call_that_made_the_file(recorder: Recorder) -> None:
    before = snapshot(recorder.work).keys()
    first, later = recorder.run("mkdir made; echo x > made/a; echo y > b"), recorder.run("cp -al made new; ln b new/b")
    assert recorder.conflicts(first) == []
    assert recorder.undo(later).failed == []
    assert recorder.conflicts(first) == []
    assert recorder.undo(first).failed == []
    assert snapshot(recorder.work).keys() == before


def test_a_file_that_cp_replaces_because_the_stash_has_a_name_of_it_can_be_brought_back(recorder: Recorder) -> None:
    before, plain = snapshot(recorder.work), recorder.work.with_name("plain")
    make_tree(plain)
    plain.with_name("further").hardlink_to(plain / "hard")
    commands = ["rm a; mkdir new; echo x > new/hard", "cp -al new/. ."]
    for command in commands:
        subprocess.run(["bash", "-c", command], cwd=plain, check=True)
    calls = [recorder.run(command) for command in commands]
    assert (recorder.work / "hard").read_text() == (plain / "hard").read_text() == "x\n"  # as with any further name
    told = call_effects.describe(recorder.folder, calls[1])
    assert str(recorder.work / "hard") in [one["path"] for one in told["changed"]]
    for call in reversed(calls):
        assert recorder.conflicts(call) == []
        assert recorder.undo(call).failed == []
    _assert_equal(snapshot(recorder.work), before, "after the undo")


@pytest.mark.parametrize("command", ["ln b new", "cp -al dir new", ""])
def test_a_file_has_no_further_name_after_a_killed_call_was_rolled_back(recorder: Recorder, command: str) -> None:
    before = {path: path.lstat().st_nlink for path in recorder.work.rglob("*")}
    call = recorder.next_call()
    if command:
        watched(command, recorder.work, call, recorder.stash)
    else:  # `rm b`, and the watcher is killed before it has written what it keeps
        call.folder_times(str(recorder.work))
        recorder.stash.keep(str(recorder.work / "b"), recorder.work.stat().st_dev)
    recorder.writer.close()
    assert [one["failed"] for one in recover(recorder.folder)] == [[]]
    assert {path: path.lstat().st_nlink for path in recorder.work.rglob("*")} == before


def test_an_ordinary_user_can_undo_a_call_that_has_closed_a_folder() -> None:
    def check(recorder: Recorder) -> None:
        before = snapshot(recorder.work)
        call = recorder.run("echo x > dir/x; touch dir/y; mkdir new; touch new/f; chmod 600 dir new")
        found = call_effects.describe(recorder.folder, call)
        assert [one["path"] for one in found["lost"]] == []
        assert call_effects.undo(recorder.folder, call, 2)["failed"] == []
        _assert_equal(snapshot(recorder.work), before, "after the undo")

    _as_ordinary_user(check)


def test_a_folder_that_a_later_call_has_closed_is_a_conflict() -> None:
    def check(recorder: Recorder) -> None:
        first, later = recorder.run("echo x > dir/x"), recorder.run("chmod 600 dir")
        answer = call_effects.undo(recorder.folder, first, 3)
        assert (answer["status"], [one["call"] for one in answer["conflicts"]]) == ("conflict", [later])
        assert answer["conflicts"][0]["path"] == str(recorder.work / "dir")

    _as_ordinary_user(check)


def test_a_folder_that_a_later_call_had_opened_is_no_conflict_when_that_was_undone() -> None:
    def check(recorder: Recorder) -> None:
        before = snapshot(recorder.work)
        first, later = recorder.run("echo x > dir/x; chmod 600 dir"), recorder.run("chmod 700 dir")
        assert recorder.undo(later).failed == []
        assert call_effects.undo(recorder.folder, first, 4)["status"] == "undone"
        _assert_equal(snapshot(recorder.work), before, "after the undo")

    _as_ordinary_user(check)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has files that a user may not change")
@pytest.mark.parametrize("command", ["chmod 600 {0}", "rm {0}", "touch -d @5 {0}", "chmod -R 700 {1}", "rm -rf {1}"])
def test_a_change_of_a_file_of_another_user_that_had_failed_is_undone_without_a_word(
    command: str,
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        theirs = Path(folder, "theirs")
        theirs.mkdir()
        (theirs / "file").write_text("theirs")
        for path in (folder, theirs):
            os.chmod(path, 0o755)

        def check(recorder: Recorder) -> None:
            before = snapshot(recorder.work), snapshot(theirs)
            call = recorder.run("echo x > a; " + command.format(theirs / "file", theirs) + "; true")
            assert recorder.undo(call).failed == []
            assert (snapshot(recorder.work), snapshot(theirs)) == before

        _as_ordinary_user(check)


def test_what_a_process_does_that_hides_its_memory_is_said_to_be_unseen() -> None:
    def check(recorder: Recorder) -> None:
        hide = "import ctypes; ctypes.CDLL(None).prctl(4, 0); open('a', 'w')"
        (unsaved,) = call_effects.describe(recorder.folder, recorder.run(f'python3 -Sc "{hide}"'))["unsaved"]
        assert "hides its memory" in unsaved["reason"]

    _as_ordinary_user(check)


def _as_ordinary_user(check: Callable[[Recorder], None]) -> None:
    """In a process of its own, and a folder that other users can reach."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        pid = os.fork()
        if pid == 0:
            try:
                if os.getuid() == 0:
                    os.setgroups([])
                    os.setgid(NOBODY)
                    os.setuid(NOBODY)
                    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 1)  # else /proc shows nobody what its children do
                make_tree(Path(folder, "work"))
                check(Recorder(Path(folder, "journal"), Path(folder, "work")))
                os._exit(0)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
        assert os.waitpid(pid, 0)[1] == 0


def _assert_equal(now: dict[str, object], then: dict[str, object], when: str) -> None:
    different = {path: (then.get(path), now.get(path)) for path in {*now, *then} if now.get(path) != then.get(path)}
    assert not different, when
