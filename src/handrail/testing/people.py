"""Scripted people: an approver, a gate that allows everything, and a user who answers questions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..protocols import Action, ApprovalRequest, Decision, Reply
from ..types import ToolContext


class RecordingApprover:
    """Returns the decisions in turn, and denies when they are used up. `requests` has what it was asked.

    A decision may be an `Answer`, with its author and scope, or None, which passes the request on.
    """

    def __init__(self, decisions: Iterable[Reply] = ()) -> None:
        self._decisions = list(decisions)
        self.requests: list[ApprovalRequest] = []

    def decide(self, request: ApprovalRequest) -> Reply:
        self.requests.append(request)
        return self._decisions.pop(0) if self._decisions else Decision.DENY


class OpenGate:
    """Allows everything, and records it in `actions`."""

    def __init__(self) -> None:
        self.actions: list[Action] = []

    def review(self, actions: Sequence[Action], context: ToolContext) -> None:  # noqa: ARG002  a Gate's signature
        self.actions.extend(actions)


class ScriptedPerson:
    """Returns the answers in turn; None, or no answer left, means that nobody is there. `asked` has the questions."""

    def __init__(self, answers: Iterable[str | None] = ()) -> None:
        self._answers = list(answers)
        self.asked: list[tuple[str, tuple[str, ...]]] = []

    def ask(self, question: str, choices: Sequence[str]) -> str | None:
        self.asked.append((question, tuple(choices)))
        return self._answers.pop(0) if self._answers else None
