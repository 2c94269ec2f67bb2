"""One call while it runs, as tools and the gate know it. It costs nothing until something is about to change."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ..environments.base import Environment
    from ..protocols import Answer, ApprovalRequest, Files
    from ..store.call_records import CallRecord
    from ..types import ToolContext

FULL = "full"
NO_JOURNAL = ("none", "this environment keeps no journal")


class Ended(NamedTuple):
    """A call that has ended here. `environment` is None for one that only file tools of this machine made."""

    record: CallRecord
    environment: Environment | None


class OpenCall:
    """One call while it runs, as tools and the gate know it: `ToolContext.effects`."""

    __slots__ = (
        "_approval", "_coverage", "_late", "_who", "environment", "is_changed", "is_running", "record",
    )  # fmt: skip

    def __init__(self, late: Callable[[], Any], tool: str, session: str | None, task: str | None) -> None:
        self._late, self._who = late, (tool, session, task)
        self.record: CallRecord | None = None
        self.environment: Environment | None = None
        self.is_changed = self.is_running = False
        self._approval: tuple[ApprovalRequest, Answer] | None = None
        self._coverage = (FULL, "")

    @property
    def calls(self) -> Any:
        """All calls of the state folder."""
        return self._late()

    @property
    def _recorder(self) -> Any:
        return self._late().recorder

    @property
    def number(self) -> int:
        """0 as long as nothing was about to change."""
        return self.record.number if self.record is not None else 0

    def begin(self, head: str, *, folder: str = "", environment: Environment | None = None) -> int:
        """Called before the first change, with the command or path that makes it. Returns the call's number, or 0 if the
        journal is switched off."""
        if self.record is None and self._recorder.is_enabled:
            self.environment = environment
            self.record = self._recorder.begin(self._who, head, folder, environment)
        return self.number

    def approved(self, request: ApprovalRequest, answer: Answer) -> None:
        """A person, or what decides for one, was asked and said yes."""
        self._approval = (request, answer)

    def covered(self, how: str, reason: str) -> None:
        """How the environment has watched the call."""
        self._coverage = (how, reason)

    def journaled(self, files: Files) -> Files:
        """The files, for a tool that writes to them."""

        def begin(path: str) -> int:
            self.is_changed = True
            folder, environment = self.calls.place_of(self._who[2])
            number = self.begin(path, folder=folder, environment=environment)
            if environment is None or hasattr(environment, "coverage"):
                return number
            self.covered(*NO_JOURNAL)  # an environment that a plugin brings
            return 0

        recorder = self._recorder
        return recorder.journaled(files, begin) if recorder.is_enabled else files

    def end(self) -> None:
        """The tool has returned. What changed nothing, and was watched, leaves no record."""
        record = self.record
        if record is None:
            return
        if self.is_changed:
            self._recorder.files.end(record.number)
        how, reason = self._coverage
        if how == FULL and not self.is_changed and not self.is_running:
            self._recorder.begun_calls.end(record.number)
            return
        ended = None if self.is_running else time.time()
        about = {"ended": ended, "coverage": how, "reason": reason, "approval": self._recorder.approval(self._approval)}
        record = record._replace(**about)
        self._recorder.begun_calls.returned(record.number, about)
        self._recorder.put(Ended(record, self.environment))


def call_number(context: ToolContext, environment: Environment, head: str, folder: str) -> int:
    """The number of the call, taken before `head` runs; 0 if no journal is kept."""
    effects = context.effects
    if effects is None or not effects.begin(head, folder=folder, environment=environment):
        return 0
    if not hasattr(environment, "coverage"):  # one that a plugin brings
        effects.covered(*NO_JOURNAL)
        return 0
    return effects.number


def has_run(context: ToolContext, environment: Environment, *, changed: bool, running: bool = False) -> int:
    """Called when it has ended or, if something is still `running`, has been started. The number, if there is a change."""
    effects = context.effects
    if effects is None or not effects.number:
        return 0
    effects.is_changed, effects.is_running = effects.is_changed or changed, effects.is_running or running
    if hasattr(environment, "coverage"):
        effects.covered(*environment.coverage)
    return effects.number if changed or running else 0
