"""Records of processes: atomic, private, and a notice that is claimed once."""

from __future__ import annotations

import os
from pathlib import Path

from handrail.store.processes import ProcessRecord, ProcessRecords

from ..support import in_threads


def record(identity: str, **fields: object) -> ProcessRecord:
    known: dict[str, object] = {
        "id": identity,
        "process_id": "abc",
        "pid": 1,
        "command": "sleep 'ä\n'",
        "started_at": 1.5,
        "task_id": "t",
        "session_id": None,
        "environment": "local",
        "settings": {"backend": "local", "options": {"a": [1, 2]}},
        "survives": True,
        "has_pty": False,
        "rows": 24,
        "columns": 80,
        "watch_patterns": ("a", "b"),
        "watched_to": 0,
        "owner": "m-b-1-0-1-2",
    }
    return ProcessRecord(**{**known, **fields})  # type: ignore[arg-type]


def test_what_is_put_is_had_by_another(tmp_path: Path) -> None:
    records = ProcessRecords(tmp_path / "table")
    one = record(records.new_id())
    records.put(one)
    assert ProcessRecords(tmp_path / "table").get(one.id) == one


def test_a_change_by_another_is_seen(tmp_path: Path) -> None:
    here, there = ProcessRecords(tmp_path), ProcessRecords(tmp_path)
    one = record(here.new_id())
    here.put(one)
    assert there.get(one.id) == one
    here.put(one._replace(exit_code=3, ended_at=2.0))
    changed = there.get(one.id)
    assert changed is not None
    assert changed.exit_code == 3
    for code in range(20):  # faster than the clock of files goes
        here.put(one._replace(exit_code=code))
        changed = there.get(one.id)
        assert changed is not None
        assert changed.exit_code == code
    here.remove(one.id)
    assert there.get(one.id) is None
    there.update(one)
    assert there.get(one.id) is None
    assert there.all() == []


def test_all_are_in_the_order_of_their_start(tmp_path: Path) -> None:
    records = ProcessRecords(tmp_path)
    for at in (3.0, 1.0, 2.0):
        records.put(record(records.new_id(), started_at=at))
    assert [one.started_at for one in records.all()] == [1.0, 2.0, 3.0]


def test_a_notice_is_claimed_by_one_of_many(tmp_path: Path) -> None:
    records = [ProcessRecords(tmp_path) for _ in range(8)]
    records[0].owe_notice("proc_00000001")
    assert sum(in_threads(8, lambda index: records[index].claim_notice("proc_00000001"))) == 1
    assert not records[0].owes_notice("proc_00000001")


def test_nothing_is_left_of_a_write_that_failed(tmp_path: Path) -> None:
    records = ProcessRecords(tmp_path)
    try:
        records.put(record(records.new_id(), settings={"a": object()}))
    except TypeError:
        pass
    else:
        raise AssertionError("it was written")
    assert os.listdir(tmp_path) == []


def test_there_may_be_no_folder_yet(tmp_path: Path) -> None:
    records = ProcessRecords(tmp_path / "none")
    assert records.all() == []
    assert records.get("proc_00000000") is None
    records.remove("proc_00000000")
    assert not records.claim_notice("proc_00000000")
