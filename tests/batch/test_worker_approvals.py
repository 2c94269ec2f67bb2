"""Approvals of all workers are in one inbox, and an answer outlives the worker that asked."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from handrail.protocols import Answer, Decision
from handrail.store.approvals import ApprovalStore
from tests.support import wait_until

from .conftest import Batch, kill, unknown

_ASKED = "mkdir -p {0}/x && rm -rf {0} && echo {0} >> effects"


@pytest.fixture
def inbox(home: Path) -> Iterator[ApprovalStore]:
    with closing(ApprovalStore(home / "state" / "approvals.db")) as store:
        yield store


def test_an_answer_given_while_the_asking_worker_is_dead_holds(batch: Batch, inbox: ApprovalStore) -> None:
    tasks = [batch.task(f"t{n}", f"echo before{n} >> effects", _ASKED.format(f"d{n}")) for n in range(2)]
    driver = batch.start(tasks, "--workers", "1", "--sessions", "2")
    wait_until(lambda: len(inbox.pending()) == 2, timeout=60)
    asked = inbox.pending()
    (worker,) = batch.workers()
    kill(driver.pid, signal.SIGKILL)  # nobody can give the questions to another worker for now
    kill(worker, signal.SIGKILL)
    driver.communicate()
    assert all(each.is_waiting for each in inbox.pending())
    for each in asked:
        assert inbox.answer(each.request.id, Answer(Decision.ONCE, by="ada")) is None
    results = batch.resume()
    assert [(each["state"], each["attempt"]) for each in results] == [("done", 2)] * 2
    assert batch.count_effects() == {"before0": 1, "before1": 1, "d0": 1, "d1": 1}
    assert not any(unknown(line) for line in batch.trajectories().values())
    assert inbox.pending() == []


def test_a_question_passes_to_the_next_worker_and_a_yes_for_the_session_too(batch: Batch, inbox: ApprovalStore) -> None:
    steps = (_ASKED.format("one"), "sleep 0.1", _ASKED.format("two"))
    driver = batch.start([batch.task("t", *steps)], "--workers", "1")
    wait_until(lambda: inbox.pending(), timeout=60)
    (asked,) = inbox.pending()
    kill(batch.workers()[0], signal.SIGKILL)
    wait_until(lambda: batch.status()["running"] == 1 and len(batch.workers()) == 1, timeout=60)
    assert [each.request.id for each in inbox.pending()] == [asked.request.id]
    assert inbox.answer(asked.request.id, Answer(Decision.SESSION, by="ada")) is None
    (result,) = batch.ended(driver)  # the second one is not asked about
    assert (result["state"], result["attempt"]) == ("done", 2)
    assert batch.count_effects() == {"one": 1, "two": 1}


def test_without_an_inbox_nobody_is_asked(batch: Batch, inbox: ApprovalStore) -> None:
    batch.run([batch.task("t", _ASKED.format("d"))], "--approvals", "deny")
    assert batch.count_effects() == {}
    assert inbox.pending() == []
    assert '"denied"' in str(batch.trajectories()["t"]["messages"])
