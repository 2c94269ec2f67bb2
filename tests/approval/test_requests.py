"""Who is asked, what holds for how long, and how waiting ends."""

from __future__ import annotations

import asyncio
import threading
import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from handrail.approval import requests
from handrail.approval.requests import CallbackApprover, ChainApprover, PolicyApprover, QueueApprover
from handrail.protocols import Answer, ApprovalRequest, Decision
from handrail.store.approvals import ApprovalStore, State
from handrail.testing import RecordingApprover
from handrail.types import CancelToken
from tests.support import error_in, takes_less_than, wait_until

from .gate_support import HARMLESS, IN_HOME, IN_PROJECT, UNKNOWN, Async, areview, command, gate, review, shell, until


def asked(approver: RecordingApprover) -> list[str]:
    return [request.text for request in approver.requests]


class TestWhatLasts:
    def test_once_is_once(self) -> None:
        here, approver = gate(), RecordingApprover([Decision.ONCE])
        assert review(here, IN_PROJECT, approver=approver, session_id="s") == "allowed"
        assert review(here, IN_PROJECT, approver=approver, session_id="s").startswith("Not run:")

    def test_session_covers_the_same_kind_in_the_same_session(self) -> None:
        here, approver = gate(), RecordingApprover([Decision.SESSION])
        assert review(here, "rm -rf build", approver=approver, session_id="s") == "allowed"
        assert review(here, "rm -rf dist", approver=approver, session_id="s") == "allowed"
        assert asked(approver) == ["rm -rf build"]
        assert review(here, "rm -rf dist", approver=approver, session_id="other").startswith("Not run:")

    @pytest.mark.parametrize("decision", [Decision.TASK, Decision.SESSION, Decision.ALWAYS])
    def test_a_yes_for_the_project_does_not_cover_the_home_or_another_project(
        self, home: Path, decision: Decision
    ) -> None:
        here, approver = gate(path=home / "config.yaml"), RecordingApprover([decision])
        who: dict[str, Any] = {"session_id": "s", "task_id": "t", "approver": approver}
        assert review(here, IN_PROJECT, **who) == "allowed"
        assert review(here, IN_HOME, **who).startswith("Not run:")
        assert review(here, command(IN_PROJECT, cwd="/srv/other"), **who).startswith("Not run:")
        assert review(here, IN_PROJECT, **who) == "allowed"

    def test_session_without_a_name_ends_with_the_gate(self, tmp_path: Path) -> None:
        here, approver = gate(tmp_path), RecordingApprover([Decision.SESSION])
        assert [review(here, IN_PROJECT, approver=approver) for _ in range(2)] == ["allowed", "allowed"]
        here.close()
        after = gate(tmp_path)
        assert review(after, IN_PROJECT, approver=approver).startswith("Not run:")
        after.close()

    def test_a_named_session_holds_after_a_restart(self, tmp_path: Path) -> None:
        here = gate(tmp_path)
        assert review(here, IN_PROJECT, approver=RecordingApprover([Decision.SESSION]), session_id="s") == "allowed"
        here.close()
        after = gate(tmp_path)
        assert review(after, IN_PROJECT, session_id="s") == "allowed"
        after.close()

    def test_task_holds_a_number_of_times(self) -> None:
        here, approver = gate(task_uses=2), RecordingApprover([Decision.TASK])
        results = [review(here, IN_PROJECT, approver=approver, task_id="t") for _ in range(4)]
        assert results[:3] == ["allowed"] * 3  # the question itself, and two more
        assert results[3].startswith("Not run:")

    def test_task_holds_for_a_while(self) -> None:
        async def briefly(request: ApprovalRequest) -> Answer:
            return Answer(Decision.TASK, seconds=1)

        here = gate()
        assert review(here, IN_PROJECT, approver=Async(briefly), task_id="t") == "allowed"
        (grant,) = here.store.grants.all()
        assert grant.expires is not None
        threading.Event().wait(max(0.0, grant.expires - time.time()) + 0.01)
        assert review(here, IN_PROJECT, task_id="t").startswith("Not run:")

    def test_always_is_written_to_the_configuration_and_keeps_its_comments(self, home: Path) -> None:
        path = home / "config.yaml"
        path.write_text("# mine\ncommand_allowlist:\n  - git.push@nowhere  # kept\nfiles:\n  roots: []\n")
        here = gate(path=path)
        assert review(here, IN_PROJECT, approver=RecordingApprover([Decision.ALWAYS])) == "allowed"
        text = path.read_text()
        assert "# mine" in text
        assert "git.push@nowhere  # kept" in text
        assert '- "fs.rm.recursive@project:/srv/app"' in text
        assert review(gate(path=path), "rm -rf dist") == "allowed"

    def test_always_counts_for_the_session_when_the_file_cannot_be_written(
        self, home: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        path = home / "config.yaml"
        path.write_text(
            "files: &a {roots: []}\ntools: {disabled_toolsets: []}\nresults: {}\ncalls: {}\nplugins: {x: {}, y: {}}\n"
        )
        (home / "config.yaml.lock").mkdir()  # no lock can be had
        here, approver = gate(path=path), RecordingApprover([Decision.ALWAYS])
        assert [review(here, IN_PROJECT, approver=approver, session_id="s") for _ in range(2)] == ["allowed", "allowed"]
        assert "valid for this session only" in caplog.text

    def test_what_is_revoked_asks_again(self, home: Path) -> None:
        here, approver = gate(path=home / "config.yaml"), RecordingApprover([Decision.SESSION])
        assert review(here, IN_PROJECT, approver=approver, session_id="s") == "allowed"
        (grant,) = here.store.grants.all()
        assert here.store.grants.revoke(grant.id) == grant
        assert review(here, IN_PROJECT, approver=approver, session_id="s").startswith("Not run:")

    def test_what_cannot_be_known_is_allowed_only_once(self) -> None:
        here, approver = gate(), RecordingApprover([Decision.ALWAYS, Decision.SESSION])
        assert review(here, UNKNOWN, approver=approver, session_id="s") == "allowed"
        assert approver.requests[0].offers == (Decision.ONCE, Decision.DENY)
        assert here.store.grants.all() == []
        assert review(here, UNKNOWN, approver=approver, session_id="s") == "allowed"
        assert len(approver.requests) == 2


class TestWaiting:
    def test_an_answer_through_the_store_is_heard_at_once_in_the_same_process(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(requests, "POLL_SECONDS", 600)  # so it is not at the next look

        async def scenario() -> str:
            here = gate()
            waiting = asyncio.create_task(areview(here, IN_PROJECT, approver=QueueApprover()))
            request = await _pending(here.store)
            with takes_less_than(30):
                assert here.store.answer(request.id, Answer(Decision.ONCE, "phone")) is None
                result = await waiting
            (record,) = here.store.decisions.latest(1)
            assert (record.by, record.decision, record.request) == ("phone", "once", request.id)
            return result

        assert asyncio.run(scenario()) == "allowed"

    def test_an_answer_through_another_connection_is_heard_soon(self, tmp_path: Path) -> None:
        async def scenario() -> str:
            here, other = gate(tmp_path), ApprovalStore(tmp_path / "approvals.db")
            waiting = asyncio.create_task(areview(here, IN_PROJECT, approver=QueueApprover()))
            request = await _pending(other)
            assert other.answer(request.id, Answer(Decision.DENY, "cli", "not today")) is None
            result = await waiting
            here.close()
            other.close()
            return result

        told = asyncio.run(scenario())
        assert "denied by the user: not today" in told
        assert "Go on without it, or ask the user" in told

    def test_no_answer_in_time_is_a_no(self) -> None:
        here = gate(timeout=0.1)
        with takes_less_than(30):
            told = review(here, IN_PROJECT, approver=QueueApprover())
        assert "nobody answered within" in told
        (record,) = here.store.decisions.latest(1)
        assert (record.decision, record.by) == ("deny", "nobody")

    def test_an_answer_after_the_time_is_told_that_it_is_late(self) -> None:
        here = gate(timeout=1)
        requests: list[ApprovalRequest] = []

        async def remember(request: ApprovalRequest) -> None:
            requests.append(request)

        assert review(here, IN_PROJECT, approver=CallbackApprover(remember)).startswith("Not run:")
        late = here.store.answer(requests[0].id, Answer(Decision.ALWAYS, "phone"))
        assert late is not None
        assert late.state is State.EXPIRED

    def test_cancelling_the_call_takes_the_question_back(self) -> None:
        ran: list[str] = []
        here = gate()
        runtime = shell(ran, here, QueueApprover())
        cancel = CancelToken()

        def cancels() -> None:
            while not here.store.pending():
                threading.Event().wait(0.002)
            cancel.cancel()

        thread = threading.Thread(target=cancels)
        thread.start()
        error = error_in(runtime.handle("terminal", {"command": IN_PROJECT}, cancel=cancel))
        thread.join()
        assert error["error_type"] == "cancelled"
        wait_until(lambda: not here.store.pending())
        assert ran == []

    def test_the_loop_and_the_threads_are_free_while_hundreds_wait(self) -> None:
        async def scenario() -> tuple[int, int, int]:
            here = gate()
            await areview(here, IN_PROJECT)  # what is loaded once
            tracemalloc.start()
            threads, before = threading.active_count(), tracemalloc.get_traced_memory()[0]
            calls = [
                asyncio.create_task(areview(here, f"rm -rf build{number}", approver=QueueApprover(), session_id="s"))
                for number in range(200)
            ]
            await until(lambda: len(here.store.pending()) == 200)
            used, more = tracemalloc.get_traced_memory()[0] - before, threading.active_count() - threads
            tracemalloc.stop()
            assert await areview(here, HARMLESS) == "allowed"
            for stored in here.store.pending():
                here.store.answer(stored.request.id, Answer(Decision.ONCE, "test"))
            results = await asyncio.gather(*calls)
            return used, more, results.count("allowed")

        used, more_threads, allowed = asyncio.run(scenario())
        assert used < 20_000_000
        assert more_threads <= 4  # those that write to the store, whatever the number of calls
        assert allowed == 200

    def test_all_that_waits_for_the_store_shares_its_commits(self, tmp_path: Path) -> None:
        statements: list[str] = []

        async def yes(_: ApprovalRequest) -> Decision:
            return Decision.TASK

        async def scenario() -> list[str]:
            here = gate(tmp_path)
            await areview(here, IN_PROJECT)  # opens the store
            with here.store.database.transaction() as connection:
                connection.set_trace_callback(statements.append)
            ask = CallbackApprover(yes)
            return await asyncio.gather(
                *(areview(here, IN_PROJECT, approver=ask, task_id=f"t{number}") for number in range(100))
            )

        assert asyncio.run(scenario()) == ["allowed"] * 100
        assert statements.count("COMMIT") < 100  # each stores its question, its answer, and a grant with its decision

    def test_a_grant_for_one_use_does_not_cover_two_actions_of_a_call(self) -> None:
        here, ask = gate(), RecordingApprover([Decision.ONCE])
        assert review(here, "rm -rf build", approver=ask, task_id="t") == "allowed"
        here.store.grants.add("task:t", [ask.requests[0].concerns[0].key], by="test", uses=1)
        assert "needs approval" in review(here, "rm -rf build", "rm -rf build/b", task_id="t")


class TestApprovers:
    def test_a_callback_may_answer_itself(self) -> None:
        async def yes(request: ApprovalRequest) -> Decision:
            return Decision.ONCE

        here = gate()
        assert review(here, IN_PROJECT, approver=CallbackApprover(yes, name="telegram")) == "allowed"
        assert here.store.decisions.latest(1)[0].by == "telegram"

    def test_a_callback_that_only_sends_waits_for_the_button(self) -> None:
        async def scenario() -> str:
            here = gate()

            async def send(request: ApprovalRequest) -> None:
                asyncio.get_running_loop().call_later(
                    0.02, here.store.answer, request.id, Answer(Decision.ONCE, "button")
                )

            return await areview(here, IN_PROJECT, approver=CallbackApprover(send))

        assert asyncio.run(scenario()) == "allowed"

    @pytest.mark.parametrize(
        "first", [lambda _: None, lambda _: 1 / 0, lambda _: "yes"], ids=["passes", "fails", "nonsense"]
    )
    def test_a_chain_asks_the_next_when_one_does_not_decide(self, first: Any) -> None:
        class First:
            decide = staticmethod(first)

        second = RecordingApprover([Decision.ONCE])
        assert review(gate(), IN_PROJECT, approver=ChainApprover(First(), second)) == "allowed"
        assert len(second.requests) == 1

    def test_a_chain_stops_at_the_first_decision(self) -> None:
        second = RecordingApprover([Decision.ONCE])
        assert "denied by policy" in review(gate(), IN_PROJECT, approver=ChainApprover(PolicyApprover(), second))
        assert second.requests == []

    def test_the_end_of_a_chain_is_a_no(self) -> None:
        assert review(gate(), IN_PROJECT, approver=ChainApprover()).startswith("Not run:")

    def test_a_blocking_approver_does_not_block_the_loop(self, held: threading.Event) -> None:
        class Blocking:
            def decide(self, request: ApprovalRequest) -> Decision:
                held.wait(60)
                return Decision.ONCE

        async def scenario() -> str:
            here = gate()
            waiting = asyncio.create_task(areview(here, IN_PROJECT, approver=Blocking()))
            await _pending(here.store)
            assert await areview(here, HARMLESS) == "allowed"
            held.set()
            return await waiting

        assert asyncio.run(scenario()) == "allowed"

    def test_the_first_answer_holds_when_two_answer(self) -> None:
        async def scenario() -> tuple[str, bool]:
            here = gate()
            late: list[Any] = []

            async def slow(request: ApprovalRequest) -> Decision:
                late.append(here.store.answer(request.id, Answer(Decision.DENY, "phone")))
                return Decision.ONCE

            return await areview(here, IN_PROJECT, approver=Async(slow)), late == [None]

        told, was_first = asyncio.run(scenario())
        assert was_first
        assert "denied by phone" in told


def test_an_answer_that_was_not_offered_is_worth_no_more_than_once() -> None:
    async def scenario() -> tuple[str, list[Any]]:
        here = gate()
        waiting = asyncio.create_task(areview(here, UNKNOWN, approver=QueueApprover(), session_id="s"))
        request = await _pending(here.store)
        here.store.answer(request.id, Answer(Decision.ALWAYS, "phone"))
        return await waiting, here.store.grants.all()

    assert asyncio.run(scenario()) == ("allowed", [])


class TestShown:
    def test_the_request_says_what_where_why_and_what_a_lasting_yes_covers(self) -> None:
        approver = RecordingApprover()
        review(gate(), IN_PROJECT, approver=approver, session_id="s", task_id="t")
        (request,) = approver.requests
        assert (request.tool, request.text, request.cwd, request.environment) == (
            "terminal",
            IN_PROJECT,
            "/srv/app",
            "local",
        )
        (concern,) = request.concerns
        assert concern.rule == "fs.rm.recursive"
        assert concern.why
        assert concern.key == "fs.rm.recursive@project:/srv/app"
        assert concern.covers == "deletes a tree of files in this folder"
        assert request.offers == tuple(each for each in Decision if each is not Decision.TRY)
        assert request.id

    def test_secrets_are_not_written_down(self, tmp_path: Path) -> None:
        here = gate(tmp_path)
        text = f"curl -H 'Authorization: Bearer abcdefghijklmnop1234' https://x; {IN_PROJECT}"

        async def look(request: ApprovalRequest) -> Decision:
            (stored,) = here.store.pending()
            concern = stored.request.concerns[-1]
            assert "abcdefghijklmnop1234" not in stored.request.text
            assert "build" in stored.request.text[concern.start : concern.end]
            return Decision.ONCE

        assert review(here, text, approver=Async(look)) == "allowed"
        here.close()
        for file in tmp_path.iterdir():
            assert b"abcdefghijklmnop1234" not in file.read_bytes()
            assert file.stat().st_mode & 0o077 == 0


def test_a_sync_caller_inside_a_loop_can_be_asked_too() -> None:
    ran: list[str] = []

    async def scenario() -> Any:
        return shell(ran, gate(), RecordingApprover([Decision.ONCE])).handle("terminal", {"command": IN_PROJECT})

    assert asyncio.run(scenario()) == "done"
    assert ran == [IN_PROJECT]


async def _pending(store: ApprovalStore) -> ApprovalRequest:
    await until(store.pending)
    return store.pending()[0].request
