"""Record what passed the gate: a short line per action, each decision in full, both without secrets."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from ..base.safe_text import secret_values
from ..store.approvals import DecisionRecord
from .secrets import without_secrets

if TYPE_CHECKING:
    from ..protocols import Action, Answer, ApprovalRequest
    from ..store.approvals import ApprovalStore
    from ..store.history import ActionHistory
    from ..types import JsonDict, ToolContext
    from .policy import Pending, Ruling

_MAX_TEXT = 2000
# What judging an action again needs to know of it.
_KEPT_DETAILS = ("project", "language", "destructive", "foreground", "command", "echo", "rule", "why")


class Records:
    """`history` None keeps only the decisions."""

    def __init__(self, history: ActionHistory | None) -> None:
        self._history = history

    def close(self) -> None:
        if self._history is not None:
            self._history.close()

    @cached_property
    def _secrets(self) -> tuple[str, ...]:
        return secret_values()  # looked up once: most actions are harmless and must not wait for it

    def ruled(self, ruling: Ruling, context: ToolContext) -> None:
        """One line in the history, for what needed no answer."""
        if self._history is not None:
            verdict = "deny" if ruling.refused is not None else "allow"
            action = ruling.judged.action
            self._history.add(self._line(action, context.tool, context.session_id, verdict, ruling.by.value))

    def decided(self, store: ApprovalStore, ruling: Ruling, context: ToolContext) -> None:
        action, found = ruling.judged.action, ruling.judged.findings
        store.decisions.add(
            DecisionRecord(
                tool=context.tool,
                kind=action.kind.value,
                text=self._text(action.text),
                cwd=action.cwd,
                environment=action.environment,
                session=context.session_id,
                task=context.task_id,
                keys=tuple(f"{finding.rule}@{finding.reach.name.lower()}" for finding in found),
                decision="deny" if ruling.refused is not None else "allow",
                by=ruling.by.value,
                why=ruling.refused.why if ruling.refused is not None else "",
            )
        )

    def answered(
        self, store: ApprovalStore, request: ApprovalRequest, answer: Answer, left: Sequence[Pending], *, seconds: float
    ) -> None:
        """A decision in the log and, for each action, a line in the history."""
        store.decisions.add(
            DecisionRecord(
                tool=request.tool,
                kind=request.kind.value,
                text=self._text(request.text),
                cwd=request.cwd,
                environment=request.environment,
                session=request.session_id,
                task=request.task_id,
                keys=tuple(concern.key for concern in request.concerns),
                decision=answer.decision.value,
                by=answer.by,
                why=answer.why,
                seconds=seconds,
                request=request.id or None,
            )
        )
        if self._history is None:
            return
        for action in {id(item.action): item.action for item in left}.values():
            self._history.add(self._line(action, request.tool, request.session_id, answer.decision.value, answer.by))

    def _line(self, action: Action, tool: str, session: str | None, verdict: str, by: str) -> JsonDict:
        is_password = action.details.get("echo") is False
        line: JsonDict = {
            "at": round(time.time(), 3),
            "tool": tool,
            "kind": action.kind.value,
            "text": "" if is_password else without_secrets(action.text, values=self._secrets)[0],
            "cwd": action.cwd,
            "verdict": verdict,
            "by": by,
        }
        if session:
            line["session"] = session
        if action.environment != "local" or action.isolated or not action.reaches_host:
            line["where"] = [action.environment, action.isolated, action.reaches_host]
        details = {name: action.details[name] for name in _KEPT_DETAILS if name in action.details}
        return {**line, "details": details} if details else line

    def _text(self, text: str) -> str:
        masked = without_secrets(text)[0]
        return masked if len(masked) <= _MAX_TEXT else f"{masked[:_MAX_TEXT]}… ({len(masked):,} characters)"
