"""Calls that wait hold up nobody: not other sessions, not their batch's time, not the caller's loop."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import handrail
from handrail import Config, Handrail
from handrail.approval import ApprovalRequest, Decision
from handrail.settings.sections import ApprovalsConfig, CallsConfig
from tests.support import PATIENCE_SECONDS, add, call


@pytest.fixture
def app() -> Iterator[Handrail]:
    with Handrail(Config(calls=CallsConfig(max_threads=4, max_threads_per_session=4))) as made:
        yield made


def test_more_waiting_calls_than_threads_do_not_delay_a_read_of_another_session(app: Handrail, tmp_path: Path) -> None:
    release, waiting = threading.Event(), threading.Semaphore(0)

    def wait(args: dict[str, Any], **_: Any) -> str:
        waiting.release()
        release.wait(PATIENCE_SECONDS)
        return "waited"

    add(app.registry, "wait", wait, waits=True)
    (tmp_path / "a").write_text("text")

    async def scenario() -> None:
        waits = [
            asyncio.create_task(app.arun_tool_calls([call("wait", f"c{n}")], task_id=f"t{n}", session_id=f"s{n}"))
            for n in range(20)
        ]
        for _ in waits:
            await asyncio.to_thread(waiting.acquire, timeout=PATIENCE_SECONDS)
        read = app.arun_tool_calls([call("read_file", path=str(tmp_path / "a"))], task_id="other", session_id="other")
        assert "text" in (await asyncio.wait_for(read, PATIENCE_SECONDS))[0]["content"]
        assert not any(task.done() for task in waits)
        release.set()
        await asyncio.gather(*waits)

    asyncio.run(scenario())


def test_terminal_waits(app: Handrail) -> None:
    entries = {entry.name: entry for entry in app.registry.entries()}
    assert entries["terminal"].waits
    assert entries["execute_code"].waits
    assert not entries["read_file"].waits


def test_time_for_an_answer_and_for_a_place_does_not_count_against_the_batch(tmp_path: Path) -> None:
    async def ask(request: ApprovalRequest) -> Decision:
        await asyncio.sleep(0.6)
        return Decision.ONCE

    config = Config(calls=CallsConfig(batch_timeout=0.5), approvals=ApprovalsConfig(ask_tools=("read_file",)))
    (tmp_path / "a").write_text("text")
    with Handrail(config) as app:
        app.handle_function_call("read_file", {"path": "/nothing"})  # what is loaded once
        with handrail.session(app, cwd=tmp_path, approver=ask) as s:
            answers = s.run([call("read_file", f"c{n}", path="a") for n in range(3)])
    assert ["text" in answer["content"] for answer in answers] == [True] * 3


def test_a_handler_that_takes_too_long_still_ends_with_the_batch(app: Handrail) -> None:
    over = threading.Event()
    add(app.registry, "slow", lambda args, **_: str(over.wait(PATIENCE_SECONDS)), waits=True)
    (answer,) = app.run_tool_calls([call("slow")], timeout=0.2)
    over.set()
    assert json.loads(answer["content"])["error_type"] == "timeout"


def test_questions_and_first_uses_do_not_block_the_loop(tmp_path: Path) -> None:
    """The store's work and the imports happen on other threads than the loop's."""
    in_loop: list[str] = []

    async def ask(request: ApprovalRequest) -> Decision:
        return Decision.SESSION

    async def scenario() -> None:
        mine = threading.get_ident()
        with Handrail(Config()) as app:
            database = type(app.gate.store.database)
            original = database._open

            def watched(self: Any, **options: Any) -> Any:
                if threading.get_ident() == mine:
                    in_loop.append("the store")
                return original(self, **options)

            database._open = watched  # type: ignore[method-assign]
            try:
                async with handrail.session(app, cwd=tmp_path, approver=ask) as s:
                    assert not (await s.call("terminal", {"command": "rm -rf x"})).is_error
                    assert not (await s.call("terminal", {"command": "rm -rf x"})).is_error
                    assert isinstance(await s.preview("terminal", {"command": "git push --force"}), ApprovalRequest)
            finally:
                database._open = original  # type: ignore[method-assign]

    asyncio.run(scenario())
    assert in_loop == []
