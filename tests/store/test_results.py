"""Long results on disk: whole, private, pruned."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

import pytest

from handrail.errors import ResultNotFound
from handrail.store.results import FileResultStore
from tests.support import in_threads


@pytest.mark.parametrize(
    "text", ["", "x", "a\nb\n", "a\r\nb\rc\n", "\x00\x1b[0m\x85\u2028", "😀 ünï\ufeff", "y" * 3_000_000], ids=range(7)
)
def test_what_is_put_in_comes_out_whole(results: FileResultStore, text: str) -> None:
    stored = results.put("tool", text)
    assert results.get(stored.id) == text
    assert (stored.tool, stored.chars, stored.lines) == ("tool", len(text), text.count("\n") + 1)


def test_a_lone_surrogate_does_not_keep_the_rest_from_being_kept(results: FileResultStore) -> None:
    stored = results.put("tool", "before\ud800after")
    text = results.get(stored.id)
    assert text.startswith("before")
    assert text.endswith("after")


@pytest.mark.parametrize(
    "result_id", ["", "r_", "../results/x", "r_0123456789abcdeg", "r_0123456789abcdef\n", "/etc/passwd"]
)
def test_what_is_no_id_is_never_looked_for(results: FileResultStore, result_id: str) -> None:
    with pytest.raises(ResultNotFound, match="not a result id"):
        results.get(result_id)


def test_an_id_that_is_gone_says_so(results: FileResultStore) -> None:
    with pytest.raises(ResultNotFound, match="r_0123456789abcdef"):
        results.get("r_0123456789abcdef")


def test_only_the_owner_can_read(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "results"
    before = os.umask(0)
    try:
        FileResultStore(folder).put("tool", "secret")
    finally:
        os.umask(before)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}


def test_old_ones_and_what_a_killed_process_left_are_taken_away(tmp_path: Path) -> None:
    store = FileResultStore(tmp_path, keep_days=7)
    old, young = store.put("tool", "old"), store.put("tool", "young")
    (tmp_path / ".new-half").write_text("half")
    eight_days_ago = time.time() - 8 * 86_400
    for name in (f"{old.id}.txt", ".new-half"):
        os.utime(tmp_path / name, (eight_days_ago, eight_days_ago))
    new = store.put("tool", "new")
    left = {file.name for file in tmp_path.iterdir()} - {".clock"}
    assert left == {f"{young.id}.txt", f"{new.id}.txt"}


def test_the_oldest_go_first_when_there_is_no_room(tmp_path: Path) -> None:
    store = FileResultStore(tmp_path, max_total_bytes=250)
    ids = []
    for age in (3, 2, 1):
        ids.append(store.put("tool", "x" * 100).id)
        moment = time.time() - age * 60
        os.utime(tmp_path / f"{ids[-1]}.txt", (moment, moment))
    newest = store.put("tool", "x" * 100).id
    with pytest.raises(ResultNotFound):
        store.get(ids[0])
    assert store.get(ids[2])
    assert store.get(newest)
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) <= 250


def test_a_result_larger_than_all_the_room_is_kept_nevertheless(tmp_path: Path) -> None:
    store = FileResultStore(tmp_path, max_total_bytes=10)
    assert store.get(store.put("tool", "x" * 100).id) == "x" * 100


def test_threads_do_not_lose_each_others_results(results: FileResultStore) -> None:
    ids = in_threads(16, lambda number: [results.put("tool", f"{number} {index}").id for index in range(10)])
    for number, mine in enumerate(ids):
        assert [results.get(result_id) for result_id in mine] == [f"{number} {index}" for index in range(10)]


def test_no_half_written_file_is_left_when_writing_fails(results: FileResultStore, tmp_path: Path) -> None:
    class Unwritable(str):
        __slots__ = ()

        def encode(self, *args: object) -> bytes:  # type: ignore[override]
            return "not bytes"  # type: ignore[return-value]

    with pytest.raises(TypeError):
        results.put("tool", Unwritable("x"))
    assert list((tmp_path / "results").iterdir()) == []


def test_a_result_can_be_written_while_it_is_made(results: FileResultStore, tmp_path: Path) -> None:
    writer = results.writer("tool")
    for piece in ("one\n", "zwölf\n", ""):
        writer.write(piece)
    assert [file.suffix for file in (tmp_path / "results").iterdir()] != [".txt"]
    stored = writer.finish()
    assert results.get(stored.id) == "one\nzwölf\n"
    assert (stored.tool, stored.chars, stored.lines) == ("tool", 10, 3)


def test_one_that_is_given_up_leaves_nothing(results: FileResultStore, tmp_path: Path) -> None:
    writer = results.writer("tool")
    writer.write("x" * 100_000)
    writer.discard()
    assert list((tmp_path / "results").iterdir()) == []


def test_making_room_leaves_what_another_call_is_writing(tmp_path: Path) -> None:
    store = FileResultStore(tmp_path, max_total_bytes=1000)
    slow = store.writer("slow")
    slow.write("a" * 900)
    store.put("other", "b" * 900)
    slow.write("c")
    assert store.get(slow.finish().id) == "a" * 900 + "c"


def test_a_clock_that_jumps_makes_nothing_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = FileResultStore(tmp_path, keep_days=7)
    kept = store.put("tool", "kept")
    real = time.time
    for days in (8, 9, -8, 0):
        monkeypatch.setattr("handrail.store.results.time.time", lambda days=days: real() + days * 86_400)
        store.put("tool", "x")
        store.put("tool", "y")
        assert store.get(kept.id) == "kept"


def test_days_that_pass_while_the_clock_runs_make_it_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = FileResultStore(tmp_path, keep_days=7)
    old = store.put("tool", "old")
    real = time.clock_gettime
    monkeypatch.setattr("handrail.store.results.time.clock_gettime", lambda clock: real(clock) + 8 * 86_400)
    store.put("tool", "new")
    with pytest.raises(ResultNotFound):
        store.get(old.id)
