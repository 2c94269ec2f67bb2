"""A command that is changed instead of allowed: what runs, what the model is told, and what is recorded."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from handrail.approval.gate import ApprovalGate
from handrail.plugins.hook_specs import hookimpl
from handrail.protocols import Answer, ApprovalRequest, Decision

from .gate_support import FORBIDDEN, IN_HOME, IN_PROJECT, command, gate, review, shell


class Editor:
    """Answers with these texts, one after the other; the last is used again."""

    name = "ann"

    def __init__(self, *texts: str, decision: Decision = Decision.DENY) -> None:
        self._texts, self._decision = list(texts), decision
        self.asked: list[str] = []

    def decide(self, request: ApprovalRequest) -> Answer:
        self.asked.append(request.text)
        text = self._texts.pop(0) if len(self._texts) > 1 else self._texts[0]
        return Answer(self._decision, edited=text)


def run(editor: Editor, text: str = IN_PROJECT, **given: Any) -> tuple[list[str], Any, ApprovalGate]:
    ran: list[str] = []
    made = gate(**given)
    runtime = shell(ran, made, editor)
    outcome = runtime.handle("terminal", {"command": text})
    return ran, json.loads(str(outcome)), made


def test_the_changed_command_runs_and_the_model_is_told() -> None:
    ran, outcome, made = run(Editor("ls build"))
    assert ran == ["ls build"]
    assert outcome == {"result": "done", "edited": {"edited_by": "ann", "command": "ls build"}}
    (edit,) = made.store.decisions.latest(5)
    assert (edit.decision, edit.by, edit.text, edit.why) == ("edit", "ann", IN_PROJECT, "changed to: ls build")


def test_a_change_is_judged_like_any_other_command() -> None:
    editor = Editor(IN_HOME, "true")
    ran, outcome, _ = run(editor)
    assert editor.asked == [IN_PROJECT, IN_HOME]
    assert ran == ["true"]
    assert outcome["edited"]["command"] == "true"
    ran, outcome, _ = run(Editor(FORBIDDEN))
    assert ran == []
    assert outcome["error_type"] == "denied"
    ran, outcome, _ = run(Editor("make deploy"), deny=["make deploy"])
    assert ran == []


def test_a_yes_with_another_text_does_not_allow_the_first_one() -> None:
    ran, _, made = run(Editor("ls", decision=Decision.SESSION))
    assert ran == ["ls"]
    assert made.store.grants.all() == []


def test_an_approver_that_never_stops_editing_ends_in_a_denial() -> None:
    editor = Editor(IN_PROJECT)
    ran, outcome, _ = run(editor)
    assert ran == []
    assert outcome["error_type"] == "denied"
    assert len(editor.asked) < 50


def test_hooks_see_the_changed_command() -> None:
    seen: list[str] = []

    class Watch:
        @hookimpl
        def pre_tool_call(self, args: Any) -> None:
            seen.append(args["command"])

    ran: list[str] = []
    runtime = shell(ran, gate(), Editor("ls build"))
    runtime.hooks.register(Watch())
    runtime.handle("terminal", {"command": IN_PROJECT})
    assert seen == [IN_PROJECT, "ls build"]


def test_what_is_not_one_whole_command_cannot_be_changed(tmp_path: Path) -> None:
    made = gate(tmp_path)
    assert "denied by ann" in review(made, command(IN_PROJECT), approver=Editor("ls"))


def test_an_answer_from_elsewhere_can_change_it(tmp_path: Path) -> None:
    made, ran = gate(tmp_path), list[str]()

    class Elsewhere:
        name = "elsewhere"

        async def decide(self, request: ApprovalRequest) -> None:
            made.store.answer(request.id, Answer(Decision.DENY, "phone", edited="ls"))
            await asyncio.Event().wait()

    runtime = shell(ran, made, Elsewhere())
    outcome = json.loads(str(runtime.handle("terminal", {"command": IN_PROJECT})))
    assert ran == ["ls"]
    assert outcome["edited"]["edited_by"] == "phone"
