"""One call while it runs, as tools and the gate know it. It costs nothing until something is about to change."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import Denied, HandrailError
from ..protocols import Decision

if TYPE_CHECKING:
    from ..environments.base import Environment
    from ..protocols import Answer, ApprovalRequest, Files
    from ..store.call_records import CallRecord
    from ..types import ToolContext

FULL = "full"
_MAX_NAMED, _MAX_LEFT = 5, 20
_NO_JOURNAL = ("none", "this environment keeps no journal")


class Ended(NamedTuple):
    """A call that has ended here. `environment` is None for one that only file tools of this machine made."""

    record: CallRecord
    environment: Environment | None


class OpenCall:
    """`ToolContext.effects`. `late` gives the `Calls`, which are loaded when something is about to change."""

    __slots__ = (
        "_approval", "_coverage", "_environment", "_late",
        "_left", "_record", "_who", "is_changed", "is_running", "is_tried",
    )  # fmt: skip

    def __init__(self, late: Callable[[], Any], tool: str, session: str | None, task: str | None) -> None:
        self._late, self._who = late, (tool, session, task)
        self._record: CallRecord | None = None
        self._environment: Environment | None = None
        self.is_changed = self.is_running = self.is_tried = False
        self._approval: tuple[ApprovalRequest, Answer] | None = None
        self._left: list[str] = []
        self._coverage = (FULL, "")

    @property
    def calls(self) -> Any:
        return self._late()

    @property
    def number(self) -> int:
        return self._record.number if self._record is not None else 0

    def begin(self, head: str, *, folder: str = "", environment: Environment | None = None) -> int:
        """Called before a change, with the command or path that makes it. The call's number, or 0 if no journal is kept."""
        if self._record is None and (recorder := self.calls.recorder).is_enabled:
            self._record = recorder.begin(self._who, head, folder, environment)
            self._environment = environment
        # The class is asked first, as a property would be worked out. Without it: one that a plugin brings.
        if environment is not None and not (hasattr(type(environment), "coverage") or hasattr(environment, "coverage")):
            self._coverage = _NO_JOURNAL
            return 0
        return self.number

    def uncovered(self, head: str, reason: str) -> None:
        """Something is about to act for the call that nobody watches."""
        self.begin(head, folder=os.getcwd())
        self._coverage = ("none", reason)

    def approved(self, request: ApprovalRequest, answer: Answer) -> None:
        """A person, or what decides for one, was asked and said yes."""
        self.is_tried = self.is_tried or answer.decision is Decision.TRY
        self._approval = (request, answer)

    def has_run(self, environment: Environment, *, changed: bool, left: Sequence[str] = ()) -> int:
        """Called when a command has ended or was started, with the command lines of what it has `left` running. The number, if
        it may have changed something."""
        if not self.number:
            return 0
        running, self._left = bool(left), [*self._left, *left]
        self.is_changed, self.is_running = self.is_changed or changed, self.is_running or running
        self._coverage = getattr(environment, "coverage", _NO_JOURNAL)
        return self.number if changed or running else 0

    def journaled(self, files: Files) -> Files:
        """The files, for a tool that writes to them."""

        def begin(path: str) -> int:
            self.is_changed = True
            folder, environment = self.calls.place_of(self._who[2])
            return self.begin(path, folder=folder, environment=environment)

        recorder = self.calls.recorder
        return recorder.journaled(files, begin) if recorder.is_enabled else files

    def take_back(self, number: int, only: str = "") -> str:
        """Undo what the call has changed, or what it changed at the path `only`: its command was stopped, or is not kept. Returns
        what the model is told."""
        _, session, task = self._who
        if not self.is_changed:
            return "it had changed nothing"
        self.is_running = False  # all of it was ended
        self.end()
        try:
            done = self.calls.undo(number, session=session, task=task, only=only)
        except HandrailError as error:
            done = {"status": "refused", "reason": str(error)}
        if done["status"] == "undone" and not done["failed"]:
            return f"{only or 'what it had changed'} is as it was before (undone by call {done['number']})"
        why = done.get("reason") or ", ".join(one["path"] for one in [*done["conflicts"], *done["failed"]][:_MAX_NAMED])
        return f"{only or 'what it had changed'} could not all be put back: {why}"

    def end(self) -> None:
        """The tool has returned. What changed nothing, and was watched, leaves no record."""
        record, self._record = self._record, None
        if record is None:
            return
        recorder, (how, reason) = self.calls.recorder, self._coverage
        if self.is_changed:
            recorder.files.end(record.number)
        if how == FULL and not self.is_changed and not self.is_running:
            recorder.begun_calls.end(record.number)
            return
        about: dict[str, Any] = {"coverage": how, "reason": reason, "left_running": self._left[:_MAX_LEFT]}
        about |= {"ended": None if self.is_running else time.time(), "approval": recorder.approval(self._approval)}
        recorder.begun_calls.returned(record.number, about)
        recorder.put(Ended(record._replace(**about), self._environment))


def call_number(context: ToolContext, environment: Environment, head: str, folder: str) -> int:
    """The number of the call, taken before `head` runs in the environment; 0 if no journal is kept."""
    number = context.effects.begin(head, folder=folder, environment=environment) if context.effects is not None else 0
    held = getattr(environment, "held", None)
    if context.effects is not None and context.effects.is_tried:
        coverage = getattr(environment, "coverage", _NO_JOURNAL)
        if coverage[0] != FULL or not number:
            why = f"Not run: it cannot be tried here: {coverage[1] or 'no journal is kept'}"
            raise Denied(why, decided_by="policy")
    if held is not None:  # its system calls can wait for an answer
        held.begin(number, context)
    return number


def stopped(context: ToolContext, environment: Environment, number: int) -> list[str]:
    """Undo a call whose command was stopped by an answer. What the model has to be told of that; empty if it was not."""
    held = getattr(environment, "held", None)
    if held is None or context.effects is None or not held.is_stopped(number):
        return []
    return [context.effects.take_back(number)]


def has_run(context: ToolContext, environment: Environment, *, changed: bool, left: Sequence[str] = ()) -> int:
    """See `OpenCall.has_run`."""
    return context.effects.has_run(environment, changed=changed, left=left) if context.effects is not None else 0
