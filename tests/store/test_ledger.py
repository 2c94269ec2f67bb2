"""The contract of a ledger, for every database that can be one."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from handrail.errors import Fenced, StoreError
from handrail.store.ledger import JournalRow, PostgresLedger, SqliteLedger, SqlLedger


@pytest.fixture(params=["file", "memory", "postgres"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SqlLedger]:
    made: SqlLedger
    if request.param == "postgres":
        made = PostgresLedger(request.getfixturevalue("postgres_service").url, secrets.token_hex(4))
    else:
        made = SqliteLedger(tmp_path / "ledger.db" if request.param == "file" else None)
    with closing(made):
        made.add((f"t{n}", '{"prompt": "50 % of ?"}') for n in range(3))
        yield made


def test_tasks_are_leased_once_in_their_order(ledger: SqlLedger) -> None:
    first, second = ledger.lease("w1", 2), ledger.lease("w2", 2)
    assert [(each.task, each.attempt) for each in (*first, *second)] == [("t0", 1), ("t1", 1), ("t2", 1)]
    assert "50 % of ?" in first[0].body
    assert ledger.held("w1") == {("t0", 1), ("t1", 1)}
    assert ledger.lease("w3", 2) == []


def test_a_lost_worker_is_fenced_and_its_journal_goes_to_the_next(ledger: SqlLedger) -> None:
    ledger.lease("w1", 1)
    ledger.begin("t0", 1, "done.1", "terminal", asked=True)
    ledger.end("t0", 1, "done.1", '"a result"')
    ledger.begin("t0", 1, "begun.1", "terminal", asked=False)
    ledger.keep_reply("t0", 1, "request", "reply")
    assert ledger.give_back("w1", "lost", 3) == 1
    with pytest.raises(Fenced):
        ledger.begin("t0", 1, "other.1", "terminal", asked=False)
    (lease,) = ledger.lease("w2", 1)
    assert (lease.task, lease.attempt) == ("t0", 2)
    assert lease.journal == {
        "done.1": JournalRow("done", True, '"a result"'),
        "begun.1": JournalRow("begun", False, ""),
    }
    assert lease.replies == {"request": "reply"}
    for late in (
        lambda: ledger.begin("t0", 1, "other.1", "terminal", asked=False),
        lambda: ledger.end("t0", 1, "begun.1", '"late"'),
        lambda: ledger.keep_reply("t0", 1, "request", "late"),
    ):
        with pytest.raises(Fenced):
            late()
    assert not ledger.finish("t0", 1, {"answer": "late"})
    assert not ledger.fail("t0", 1, {"error": "late"}, 1)
    assert ledger.finish("t0", 2, {"answer": "in time"})
    assert next(ledger.results())["answer"] == "in time"


def test_a_done_call_that_runs_again_keeps_its_record(ledger: SqlLedger) -> None:
    ledger.lease("w1", 1)
    ledger.begin("t0", 1, "call.1", "terminal", asked=False)
    ledger.end("t0", 1, "call.1", '"first"')
    ledger.give_back("w1", "lost", 3)
    ledger.lease("w2", 1)
    ledger.begin("t0", 2, "call.1", "terminal", asked=False)
    ledger.give_back("w2", "lost", 3)
    assert ledger.lease("w3", 1)[0].journal["call.1"] == JournalRow("done", False, '"first"')


def test_a_task_fails_after_so_many_failures_and_stops_are_none(ledger: SqlLedger) -> None:
    for _ in range(3):
        ledger.lease("w1", 1)
        ledger.give_back("w1", "stopped", 0)
    ledger.lease("w1", 1)
    ledger.give_back("w1", "lost", 2)
    assert ledger.counts()["waiting"] == 3
    ledger.lease("w1", 1)
    assert ledger.fail("t0", 5, {"error": "it failed", "cost": 0.5, "tokens": 7}, 2)
    assert ledger.counts() == {"waiting": 2, "running": 0, "done": 0, "failed": 1}
    assert ledger.totals() == (0.0, 0, 0.5, 7)
    assert next(ledger.results()) == {
        "id": "t0", "state": "failed", "attempt": 5, "worker": "w1", "error": "it failed", "cost": 0.5, "tokens": 7
    }  # fmt: skip


def test_a_question_belongs_to_who_asked_it_last(ledger: SqlLedger) -> None:
    assert ledger.asker("q") is None
    ledger.note_question("q", "t0", 1)
    ledger.note_question("q", "t0", 2)
    assert ledger.asker("q") == ("t0", 2)


def test_tasks_that_cannot_all_be_added_are_not_added_at_all(ledger: SqlLedger) -> None:
    with pytest.raises(StoreError):
        ledger.add([("new", "{}"), ("t0", "{}")])
    assert sum(ledger.counts().values()) == 3
