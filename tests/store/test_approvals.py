"""Requests outlive their process, and each is answered exactly once."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from handrail.approval.records import ActionHistory
from handrail.errors import RequestNotFound, StoreError
from handrail.protocols import Answer, ApprovalRequest, Decision
from handrail.store.approvals import ApprovalStore, DecisionRecord, State
from tests.support import in_threads, wait_until


def request(text: str = "rm -rf build", seconds: float = 60.0) -> ApprovalRequest:
    return ApprovalRequest("terminal", {}, "why", text=text, session_id="s", expires_at=time.time() + seconds)


@pytest.fixture
def store(tmp_path: Path) -> ApprovalStore:
    return ApprovalStore(tmp_path / "approvals.db")


def start(code: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )


ASKS = """
import sys, time
from pathlib import Path
from handrail.protocols import ApprovalRequest
from handrail.store.approvals import ApprovalStore
store = ApprovalStore(Path(sys.argv[1]))
stored = store.ask(ApprovalRequest("terminal", {}, "why", text="rm -rf build", session_id="s",
                                   expires_at=time.time() + 600), fingerprint="same")
print(stored.request.id, flush=True)
sys.stdin.read()
"""

ANSWERS = """
import sys
from pathlib import Path
from handrail.protocols import Answer, Decision
from handrail.store.approvals import ApprovalStore
store = ApprovalStore(Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
for request_id in sys.argv[2:]:
    late = store.answer(request_id, Answer(Decision.ONCE, "somebody"))
    print("first" if late is None else "late", flush=True)
"""


def test_whoever_comes_first_decides_and_the_others_are_told(store: ApprovalStore, tmp_path: Path) -> None:
    ids = [store.ask(request(), fingerprint=str(number)).request.id for number in range(20)]
    people = [start(ANSWERS, str(tmp_path / "approvals.db"), *ids) for _ in range(6)]
    for person in people:
        assert person.stdout is not None
        assert person.stdout.readline() == "ready\n"
    for person in people:
        assert person.stdin is not None
        person.stdin.write("\n")
        person.stdin.flush()
    told = [person.communicate(timeout=60)[0].split() for person in people]
    for number in range(20):
        assert sorted(answers[number] for answers in told) == ["first", *["late"] * 5]
    assert store.pending() == []
    store.close()


def test_a_request_whose_id_another_one_has_gets_a_new_one(store: ApprovalStore) -> None:
    first = store.ask(request("rm -rf a"), fingerprint="a")
    second = store.ask(request("rm -rf b")._replace(id=first.request.id), fingerprint="b")
    assert second.request.id != first.request.id
    assert [one.request.text for one in store.pending()] == ["rm -rf a", "rm -rf b"]


def test_threads_answer_once_too(store: ApprovalStore) -> None:
    stored = store.ask(request(), fingerprint="f")
    answers = in_threads(8, lambda number: store.answer(stored.request.id, Answer(Decision.ONCE, str(number))))
    assert answers.count(None) == 1
    assert len(in_threads(8, lambda _: store.claim(stored.request.id))) == 8
    assert store.get(stored.request.id).state is State.CLAIMED
    store.close()


def test_only_one_goes_on_with_an_answer(store: ApprovalStore) -> None:
    stored = store.ask(request(), fingerprint="f")
    store.answer(stored.request.id, Answer(Decision.SESSION, "cli", seconds=5.0, uses=2))
    claims = in_threads(8, lambda _: store.claim(stored.request.id))
    assert [claim for claim in claims if claim] == [Answer(Decision.SESSION, "cli", "", 5.0, 2)]
    store.close()


class TestRestart:
    def test_a_question_survives_the_process_that_asked_it(self, store: ApprovalStore, tmp_path: Path) -> None:
        process = start(ASKS, str(tmp_path / "approvals.db"))
        assert process.stdout is not None
        request_id = process.stdout.readline().strip()
        (stored,) = store.pending()
        assert (stored.request.id, stored.is_waiting) == (request_id, True)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        wait_until(lambda: not store.pending()[0].is_waiting)
        again = store.ask(request(), fingerprint="same")
        assert again.request.id == request_id  # what was sent to a telephone before still answers it
        assert again.is_waiting
        store.close()

    def test_an_answer_that_came_meanwhile_holds_for_the_same_question_once(
        self, store: ApprovalStore, tmp_path: Path
    ) -> None:
        process = start(ASKS, str(tmp_path / "approvals.db"))
        assert process.stdout is not None
        request_id = process.stdout.readline().strip()
        process.kill()
        process.communicate()
        assert store.answer(request_id, Answer(Decision.ONCE, "phone")) is None
        other = store.ask(request("rm -rf other"), fingerprint="other")
        assert (other.state, other.answer) == (State.PENDING, None)
        again = store.ask(request(), fingerprint="same")
        assert again.state is State.ANSWERED
        assert store.claim(request_id) == Answer(Decision.ONCE, "phone")
        assert store.ask(request(), fingerprint="same").state is State.PENDING
        store.close()

    def test_a_living_process_keeps_its_question(self, store: ApprovalStore, tmp_path: Path) -> None:
        process = start(ASKS, str(tmp_path / "approvals.db"))
        assert process.stdout is not None
        request_id = process.stdout.readline().strip()
        assert store.ask(request(), fingerprint="same").request.id != request_id
        process.communicate("")
        store.close()


class TestTooLate:
    def test_expired(self, store: ApprovalStore) -> None:
        stored = store.ask(request(seconds=-1), fingerprint="f")
        late = store.answer(stored.request.id, Answer(Decision.ONCE, "cli"))
        assert late is not None
        assert late.state is State.EXPIRED
        assert store.claim(stored.request.id) is None
        store.close()

    def test_withdrawn(self, store: ApprovalStore) -> None:
        stored = store.ask(request(), fingerprint="f")
        assert store.withdraw(stored.request.id)
        late = store.answer(stored.request.id, Answer(Decision.ONCE, "cli"))
        assert late is not None
        assert late.state is State.WITHDRAWN
        store.close()

    def test_answered_by_another(self, store: ApprovalStore) -> None:
        stored = store.ask(request(), fingerprint="f")
        assert store.answer(stored.request.id, Answer(Decision.DENY, "phone")) is None
        late = store.answer(stored.request.id, Answer(Decision.ALWAYS, "cli"))
        assert late is not None
        assert late.answer == Answer(Decision.DENY, "phone")
        store.close()


@pytest.mark.parametrize("name", ["", "zzzz", "%", "_", "' OR 1=1 --"])
def test_a_request_that_is_not_there(store: ApprovalStore, name: str) -> None:
    store.ask(request(), fingerprint="f")
    with pytest.raises(RequestNotFound):
        store.get(name)
    with pytest.raises(RequestNotFound):
        store.answer(name, Answer(Decision.ONCE, "cli"))
    store.close()


def test_the_beginning_of_an_id_is_enough_if_it_is_the_only_one(store: ApprovalStore) -> None:
    ids = {store.ask(request(), fingerprint=str(number)).request.id for number in range(40)}
    one = ids.pop()
    assert store.get(one[:7]).request.id == one
    with pytest.raises(RequestNotFound, match="more than one"):
        store.get(next(first for first in "0123456789abcdef" if sum(i.startswith(first) for i in {*ids, one}) > 1))
    store.close()


class TestGrants:
    def test_uses_run_out_for_all_processes_together(self, store: ApprovalStore, tmp_path: Path) -> None:
        store.grants.add("task:t", ["k"], by="cli", uses=5)
        others = [ApprovalStore(tmp_path / "approvals.db") for _ in range(4)]

        def use(number: int) -> int:
            grants = others[number].grants
            held = (grants.of(["task:t"]) for _ in range(5))
            return sum(bool(found) and grants.use(found) for found in held)

        assert sum(in_threads(4, use)) == 5
        assert store.grants.all() == []
        for each in (store, *others):
            each.close()

    def test_a_grant_again_replaces_the_old(self, store: ApprovalStore) -> None:
        store.grants.add("session:s", ["k"], by="cli", uses=1)
        store.grants.add("session:s", ["k"], by="web")
        (grant,) = store.grants.all()
        assert (grant.by, grant.uses_left) == ("web", None)
        store.close()

    def test_what_belonged_to_a_process_goes_with_it(self, store: ApprovalStore, tmp_path: Path) -> None:
        code = """
        import sys
        from pathlib import Path
        from handrail.store.approvals import ApprovalStore
        store = ApprovalStore(Path(sys.argv[1]))
        store.grants.add("process:1", ["k"], by="cli")
        store.grants.add("session:1", ["k"], by="cli")
        """
        start(code, str(tmp_path / "approvals.db")).communicate("")
        wait_until(lambda: [grant.scope for grant in store.grants.all()] == ["session:1"])
        store.close()


class TestFile:
    def test_it_is_private(self, store: ApprovalStore, tmp_path: Path) -> None:
        store.ask(request(), fingerprint="f")
        assert {file.name for file in tmp_path.iterdir()} >= {"approvals.db"}
        assert all(file.stat().st_mode & 0o077 == 0 for file in tmp_path.iterdir())
        store.close()

    def test_one_of_a_later_version_is_left_alone(self, tmp_path: Path) -> None:
        with sqlite3.connect(tmp_path / "approvals.db") as connection:
            connection.execute("PRAGMA user_version=99")
        connection.close()
        with pytest.raises(StoreError, match="later version"):
            ApprovalStore(tmp_path / "approvals.db").pending()

    def test_what_is_no_database_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "approvals.db").write_bytes(b"x" * 5000)
        with pytest.raises(StoreError, match=r"approvals\.db cannot be used"):
            ApprovalStore(tmp_path / "approvals.db").pending()

    def test_many_processes_can_make_it_at_once(self, tmp_path: Path) -> None:
        people = [start(ASKS, str(tmp_path / "approvals.db")) for _ in range(6)]
        ids = {person.communicate("", timeout=60)[0].strip() for person in people}
        assert all(ids)


def test_the_decisions_are_kept_in_order_with_who_and_how_long(store: ApprovalStore) -> None:
    for number in range(3):
        store.decisions.add(
            DecisionRecord(
                "terminal", "command", f"c{number}", "/w", "local", "s", None, ("k@home",), "once", "cli", seconds=2.5
            )
        )
    latest = store.decisions.latest(2)
    assert [record.text for record in latest] == ["c1", "c2"]
    assert (latest[0].by, latest[0].seconds, latest[0].keys) == ("cli", 2.5, ("k@home",))
    store.close()


class TestHistory:
    def test_lines_come_back_in_order_and_the_oldest_go_first(self, tmp_path: Path) -> None:
        history = ActionHistory(tmp_path / "actions.jsonl", max_bytes=20_000)
        for number in range(1000):
            history.add({"text": f"command {number} " + "x" * 40})
        numbers = [int(line["text"].split()[1]) for line in history.lines()]
        assert numbers == list(range(numbers[0], 1000))
        assert numbers[0] > 0
        assert sum(file.stat().st_size for file in tmp_path.iterdir()) < 30_000
        history.close()

    def test_two_writers_lose_nothing(self, tmp_path: Path) -> None:
        writers = [ActionHistory(tmp_path / "actions.jsonl") for _ in range(4)]
        in_threads(4, lambda who: [writers[who].add({"text": f"{who}-{number}"}) for number in range(200)])
        assert sorted(line["text"] for line in writers[0].lines()) == sorted(
            f"{who}-{number}" for who in range(4) for number in range(200)
        )
        for writer in writers:
            writer.close()

    def test_a_disk_that_takes_nothing_is_said_once(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        (tmp_path / "actions.jsonl").mkdir()
        history = ActionHistory(tmp_path / "actions.jsonl")
        for _ in range(3):
            history.add({"text": "x"})
        assert len(caplog.records) == 1
