"""What people are told of a call, and what they can take back."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from handrail.environments.shell_host import call_effects, journal_log, journal_undo, proc
from handrail.environments.shell_host.journal import CallJournal
from handrail.environments.shell_host.journal_expiry import Clock
from handrail.environments.shell_host.journal_undo import recover

from .random_changes import make_tree
from .watched_commands import Recorder, snapshot, watched

_DAY = 86_400


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[Recorder]:
    make_tree(tmp_path / "work")
    made = Recorder(tmp_path / "journal", tmp_path / "work")
    yield made
    made.writer.close()


def names(recorder: Recorder, found: list[dict[str, Any]]) -> list[str]:
    return [os.path.relpath(one["path"], recorder.work) for one in found]


def undo(recorder: Recorder, call: int, **more: Any) -> dict[str, Any]:
    recorder.number += 1
    return call_effects.undo(recorder.folder, call, recorder.number, **more)


def test_each_path_is_told_by_what_became_of_it(recorder: Recorder) -> None:
    call = recorder.run(
        "rm a; echo more >> dir/x; sed -i s/11/12/ b; mv dir/sub renamed; mkdir -p made/deep; echo 12345 > made/deep/f;"
        "echo t > temporary; rm temporary"
    )
    told = call_effects.describe(recorder.folder, call, diff=True)
    assert names(recorder, told["lost"]) == ["a"]
    assert told["lost"][0]["size"] == 6
    assert "-1 one" in told["lost"][0]["diff"]
    assert names(recorder, told["changed"]) == ["b", "dir/x"]
    assert "-11" in told["changed"][0]["diff"]
    assert told["changed"][0]["diff"].endswith("more lines")
    assert told["changed"][1]["size"] == 1
    assert told["changed"][1]["size_now"] == 6
    assert names(recorder, told["created"]) == ["made"]
    assert told["created"][0]["files"] == 1
    assert told["created"][0]["size"] == 6
    assert [(one["path"], one["to"]) for one in told["moved"]] == [
        (str(recorder.work / "dir/sub"), str(recorder.work / "renamed"))
    ]
    assert told["can_undo"]
    assert not told["undone"]
    assert told["ended"] > 0


def test_what_could_not_be_removed_or_moved_is_not_told_as_changed(recorder: Recorder) -> None:
    failed = recorder.run("rmdir dir dir/x; mv a dir/x/new; unlink dir; true")
    assert not any(call_effects.describe(recorder.folder, failed)["counts"].values())
    call = recorder.run("rmdir dir; chmod 700 dir; mv a b/new; echo more >> a; rm -f b; echo again > b; true")
    assert names(recorder, call_effects.describe(recorder.folder, call)["changed"]) == ["a", "b", "dir"]


def test_a_file_that_another_was_moved_over_is_told_with_what_is_lost_of_it(recorder: Recorder) -> None:
    call = recorder.run("mv -f a dir/x")
    told = call_effects.describe(recorder.folder, call, diff=True)
    assert names(recorder, told["changed"]) == ["dir/x"]
    assert "-1\n+1 one" in told["changed"][0]["diff"]
    assert names(recorder, told["moved"]) == ["a"]


def test_what_a_call_did_is_told_the_same_after_later_calls_and_after_its_undo(recorder: Recorder) -> None:
    call = recorder.run("echo two > a; rm dir/x")
    first = call_effects.describe(recorder.folder, call, diff=True)
    recorder.run("rm -rf a dir; echo other > dir")
    later = call_effects.describe(recorder.folder, call, diff=True)
    assert (later["changed"], later["lost"]) == (first["changed"], first["lost"])
    assert undo(recorder, 2)["status"] == "undone"
    assert undo(recorder, call)["status"] == "undone"
    undone = call_effects.describe(recorder.folder, call, diff=True)
    assert (undone["changed"], undone["lost"]) == (first["changed"], first["lost"])
    assert undone["undone"]
    assert not undone["can_undo"]


def test_undo_and_redo_bring_back_both_states(recorder: Recorder) -> None:
    before = snapshot(recorder.work)
    call = recorder.run("rm -rf dir; echo x > a")
    after = snapshot(recorder.work)
    undone = undo(recorder, call)
    assert undone["status"] == "undone"
    assert snapshot(recorder.work) == before
    assert undo(recorder, call)["status"] == "refused"
    assert call_effects.describe(recorder.folder, call)["undone_by"] == undone["number"]
    assert undo(recorder, undone["number"])["status"] == "undone"
    assert snapshot(recorder.work) == after
    assert call_effects.describe(recorder.folder, call)["undone_by"] == 0
    assert undo(recorder, call)["status"] == "undone"
    assert snapshot(recorder.work) == before


def test_a_conflict_changes_nothing_and_names_who_changed_the_path(recorder: Recorder) -> None:
    call = recorder.run("echo mine > a; echo mine > dir/x")
    later = recorder.run("echo later > a")
    (recorder.work / "dir/x").write_text("by hand")
    now = snapshot(recorder.work)
    refused = undo(recorder, call)
    assert refused["status"] == "conflict"
    assert {(os.path.basename(one["path"]), one["call"]) for one in refused["conflicts"]} == {("a", later), ("x", 0)}
    assert all(one["when"] > 0 for one in refused["conflicts"])
    assert snapshot(recorder.work) == now
    forced = undo(recorder, call, force=True)
    assert (recorder.work / "a").read_text() == "1 one\n"
    assert (recorder.work / "dir/x").read_text() == "1"
    beside = forced["kept_beside"]
    assert Path(beside[str(recorder.work / "dir/x")]).read_text() == "by hand"
    assert Path(beside[str(recorder.work / "a")]).read_text() == "later\n"
    # What the later call has changed was taken away by the undo, which has to be undone first.
    after = undo(recorder, later)
    assert (after["status"], [one["call"] for one in after["conflicts"]]) == ("conflict", [forced["number"]])


def test_a_change_by_hand_is_noticed_although_a_later_call_has_changed_the_same_folder(recorder: Recorder) -> None:
    call = recorder.run("echo 1 > new1; echo 1 > new2")
    (recorder.work / "new1").write_text("by hand")
    recorder.run("rm new2; touch new3")
    assert [os.path.basename(one["path"]) for one in undo(recorder, call)["conflicts"]] == ["new2", "new1"]


def test_a_folder_that_a_later_call_made_a_link_to_itself_is_a_conflict(recorder: Recorder) -> None:
    call = recorder.run("echo two > dir/x")
    recorder.run("rm -r dir; ln -s dir dir")
    told = undo(recorder, call)
    assert told["status"] == "conflict"
    assert {one["call"] for one in told["conflicts"]} == {call + 1}
    assert undo(recorder, call + 1)["status"] == "undone"
    assert undo(recorder, call)["status"] == "undone"
    assert (recorder.work / "dir" / "x").read_text() == "1"


def test_after_a_part_of_a_call_the_rest_is_taken_back_and_the_part_left_alone(recorder: Recorder) -> None:
    before = snapshot(recorder.work)
    call = recorder.run("echo two > a; echo new > k1; echo new > k2; rm -r dir/sub")
    assert undo(recorder, call, only=str(recorder.work / "k1"))["status"] == "undone"
    assert undo(recorder, call, only=str(recorder.work / "k1"))["reason"].startswith(
        f"call {call} is undone already at "
    )
    (recorder.work / "k1").write_text("mine")
    rest = undo(recorder, call)
    assert (rest["status"], names(recorder, rest["created"]), names(recorder, rest["lost"])) == (
        "undone",
        ["k2"],
        ["dir/sub", "dir/sub/z"],
    )
    assert (recorder.work / "k1").read_text() == "mine"
    (recorder.work / "k1").unlink()
    os.utime(recorder.work, ns=(0, before[str(recorder.work)][3]))
    assert snapshot(recorder.work) == before


@pytest.mark.parametrize("command", ["rm -rf dir", "mv dir other"])
def test_after_a_part_of_a_folder_the_rest_of_it_comes_back(recorder: Recorder, command: str) -> None:
    (recorder.work / "dir" / "sub" / "more").mkdir()
    before = snapshot(recorder.work)
    call = recorder.run(command)
    for part in ("dir/sub/z", "dir/x"):
        assert undo(recorder, call, only=str(recorder.work / part))["status"] == "undone"
        assert (recorder.work / part).exists()
    assert not (recorder.work / "dir" / "sub" / "more").exists()
    assert undo(recorder, call)["status"] == "undone"
    assert snapshot(recorder.work) == before
    assert undo(recorder, recorder.number)["status"] == "undone"
    assert not (recorder.work / "dir" / "sub" / "more").exists()


def test_what_an_undo_moves_away_with_its_folder_is_told_by_name_and_comes_back_in_parts(recorder: Recorder) -> None:
    call = recorder.run("mkdir -p new/in; echo 1 > new/in/a; echo 2 > new/b; chmod 751 new/in")
    assert undo(recorder, call)["status"] == "undone"
    undone = recorder.number
    told = call_effects.describe(recorder.folder, undone)
    assert names(recorder, told["lost"]) == ["new", "new/b", "new/in", "new/in/a"]
    assert undo(recorder, undone, only=str(recorder.work / "new/in/a"))["status"] == "undone"
    assert (recorder.work / "new/in/a").read_text() == "1\n"
    assert ((recorder.work / "new/in").stat().st_mode & 0o777, (recorder.work / "new/b").exists()) == (0o751, False)
    assert undo(recorder, undone)["status"] == "undone"
    assert (recorder.work / "new/b").read_text() == "2\n"


def test_a_part_of_a_call_is_taken_back_alone_and_a_dry_run_changes_nothing(recorder: Recorder) -> None:
    call = recorder.run("echo x > a; rm -rf dir/sub")
    now = snapshot(recorder.work)
    possible = undo(recorder, call, dry_run=True)
    assert possible["status"] == "possible"
    assert names(recorder, possible["lost"]) == ["dir/sub", "dir/sub/z"]
    assert snapshot(recorder.work) == now
    assert undo(recorder, call, only=str(recorder.work / "dir/sub"))["status"] == "undone"
    assert (recorder.work / "dir/sub/z").exists()
    assert (recorder.work / "a").read_text() == "x\n"
    assert undo(recorder, call, only=str(recorder.work / "dir/y"))["status"] == "refused"
    assert undo(recorder, call)["status"] == "undone"
    assert (recorder.work / "a").read_text() == "1 one\n"


def test_a_further_name_of_what_the_call_has_made_is_part_of_the_new_folder(recorder: Recorder) -> None:
    before = snapshot(recorder.work)
    call = recorder.run(
        "mkdir new; echo x > new/t; ln new/t new/u; rm new/t; touch new/u; ln a new/a; echo more >> new/a"
    )
    told = call_effects.describe(recorder.folder, call)
    assert (names(recorder, told["changed"]), names(recorder, told["created"])) == (["new/a"], ["new"])
    assert recorder.undo(call).failed == []
    assert snapshot(recorder.work) == before


def test_what_is_too_large_to_be_copied_is_named_as_not_saved(recorder: Recorder) -> None:
    call = CallJournal(recorder.writer, recorder.stash, 1, max_copy_bytes=1000)
    assert watched("echo x > a; echo x > b", recorder.work, call, recorder.stash) == 0
    call.end()
    told = call_effects.describe(recorder.folder, 1)
    assert [(one["path"], "copies are limited to 1,000" in one["reason"]) for one in told["unsaved"]] == [
        (str(recorder.work / "b"), True)
    ]


def test_a_damaged_journal_is_said_to_be_damaged(recorder: Recorder) -> None:
    call = recorder.run("echo x > a; rm b")
    recorder.writer.close()
    path = next(Path(recorder.folder).glob("*.log"))
    content = bytearray(path.read_bytes())
    content[60] ^= 1
    path.write_bytes(content)
    assert "damaged" in call_effects.describe(recorder.folder, call)["damaged"]
    assert undo(recorder, call)["status"] == "refused"


def clock(wall: float, running: float, boot: str = "one") -> Clock:
    return Clock(wall, running, boot)


def now_of(recorder: Recorder, call: int) -> float:
    return float(call_effects.describe(recorder.folder, call)["ended"])


@pytest.mark.parametrize(
    ("made", "later"), [("f", "echo y > f"), ("f", "mv f g"), ("n/f", "mv n g"), ("n/f", "rm -r n")]
)
def test_what_a_person_wrote_is_in_the_way_also_after_a_later_call_was_undone(
    recorder: Recorder, made: str, later: str
) -> None:
    call = recorder.run(f"mkdir n; echo x > {made}")
    now = time.time_ns()
    while (recorder.work / made).stat().st_mtime_ns <= now:  # the clock of a file system has long ticks
        (recorder.work / made).write_text("mine")
    assert undo(recorder, recorder.run(later))["status"] == "undone"
    (conflict,) = undo(recorder, call)["conflicts"]
    assert conflict["call"] == 0
    assert str(recorder.work / made).startswith(conflict["path"])
    assert (recorder.work / made).read_text() == "mine"


def test_a_later_call_that_wrote_to_another_name_of_the_file_is_in_the_way(recorder: Recorder) -> None:
    first, later = recorder.run("echo x > a"), recorder.run("echo y > hard")
    answer = undo(recorder, first)
    assert [(one["path"], one["call"]) for one in answer["conflicts"]] == [(str(recorder.work / "a"), later)]
    assert undo(recorder, later)["status"] == undo(recorder, first)["status"] == "undone"


def test_a_time_that_a_call_has_set_is_no_change_of_somebody_else(recorder: Recorder) -> None:
    first, later = recorder.run("echo x > f; touch -d 2100-01-01 f"), recorder.run("echo y > f")
    assert undo(recorder, later)["status"] == undo(recorder, first)["status"] == "undone"


def test_old_calls_expire_and_the_young_can_still_be_undone(recorder: Recorder) -> None:
    old = recorder.run("rm b")
    ended = now_of(recorder, old)
    call_effects.prune(recorder.folder, 7, 1 << 30, clock(ended, 1000))
    recorder.writer.close()
    eight_days = 8 * _DAY
    os.utime(recorder.work)
    told = call_effects.prune(recorder.folder, 7, 1 << 30, clock(ended + eight_days, 1000 + eight_days))
    assert told["calls"] == [old]
    assert told["freed_bytes"] >= 90_000
    assert list(Path(recorder.folder, "stash").iterdir()) == []
    assert undo(recorder, old)["status"] == "refused"


def test_the_oldest_goes_first_when_too_much_is_kept(recorder: Recorder) -> None:
    calls = [recorder.run(f"head -c 100000 /dev/zero > f{i}") and recorder.run(f"rm f{i}") for i in range(3)]
    told = call_effects.prune(recorder.folder, 7, 250_000)
    assert calls[0] in told["calls"]
    assert calls[1] not in told["calls"]
    assert told["kept_bytes"] <= 250_000
    assert undo(recorder, calls[0])["reason"] == "its changes are not kept any more"
    assert undo(recorder, calls[2])["status"] == "undone"
    assert (recorder.work / "f2").stat().st_size == 100_000


def test_what_a_killed_call_had_made_is_not_kept_for_ever_after_it_was_rolled_back(recorder: Recorder) -> None:
    watched("mkdir made; head -c 100000 /dev/zero > made/f", recorder.work, recorder.next_call(), recorder.stash)
    recorder.writer.close()
    assert [one["outcome"] for one in recover(recorder.folder)] == ["rolled back"]
    now = time.time()
    assert call_effects.prune(recorder.folder, 7, 1 << 30, clock(now, 1000))["kept_bytes"] > 100_000
    later = 8 * _DAY
    assert call_effects.prune(recorder.folder, 7, 1 << 30, clock(now + later, 1000 + later))["freed_bytes"] >= 100_000
    assert list(Path(recorder.folder, "stash").iterdir()) == []


@pytest.mark.parametrize("command", ["echo x > a", "echo x >> a"])
def test_what_somebody_wrote_before_a_killed_call_was_rolled_back_is_not_lost(recorder: Recorder, command: str) -> None:
    watched(command, recorder.work, recorder.next_call(), recorder.stash)
    recorder.writer.close()
    (recorder.work / "a").write_text("1 one\nmine")
    assert [one["failed"] for one in recover(recorder.folder)] == [[]]
    assert (recorder.work / "a").read_text() == "1 one\n"
    assert [path.read_text() for path in Path(recorder.folder, "stash").iterdir()] == ["1 one\nmine"]


def test_a_killed_call_is_rolled_back_when_nobody_is_left_who_could_change_something_for_it(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_undo, "_END_SECONDS", 0)
    with subprocess.Popen(["sleep", "60"]) as shell:
        stat = proc.stat_of(shell.pid)
        assert stat is not None
        recorder.writer.made_by(journal_log.processes([(shell.pid, stat.start)]))
        watched("echo x > a", recorder.work, recorder.next_call(), recorder.stash)
        recorder.writer.close()
        assert recover(recorder.folder) == []
        shell.kill()
    assert [one["outcome"] for one in recover(recorder.folder)] == ["rolled back"]
    assert (recorder.work / "a").read_text() == "1 one\n"


def test_a_clock_that_jumped_makes_nothing_expire_before_a_day_has_passed(recorder: Recorder) -> None:
    call = recorder.run("rm b")
    ended = now_of(recorder, call)
    year = 365 * _DAY

    def gone(at: Clock) -> list[int]:
        return list(call_effects.prune(recorder.folder, 7, 1 << 30, at, dry_run=False)["calls"])

    assert gone(clock(ended, 1000)) == []
    assert gone(clock(ended + year, 1060)) == []
    assert gone(clock(ended + year + 60, 1120)) == []
    assert gone(clock(ended + year + 500, 10, "two")) == []
    assert gone(clock(ended + year + 500 + _DAY + 1, 11 + _DAY, "two")) == [call]


def test_a_call_that_has_not_ended_does_not_expire(recorder: Recorder) -> None:
    call = recorder.next_call()
    call.remove(str(recorder.work / "a"), os.lstat(recorder.work / "a"))
    os.unlink(recorder.work / "a")
    assert call_effects.prune(recorder.folder, 0, 0)["calls"] == []
    call.end()
    assert call_effects.prune(recorder.folder, 7, 0)["calls"] == [call.call]
    assert os.path.exists(recorder.writer.path), "it is being written to"
