"""The values that travel with one call.

They are named tuples where they can be: defining a dataclass costs half a millisecond, and a start has few to spend.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from .errors import CallCancelled, CallTimeout
from .settings.schema import Config

if TYPE_CHECKING:
    from .environments.tasks import TaskEnvironments
    from .processes.table import ProcessTable
    from .protocols import AgentState, Approver, Files, Gate, Person, ResultStore, Toolbox

log = logging.getLogger(__name__)

JsonDict = dict[str, Any]
ProgressListener = Callable[["Progress"], None]


class Progress(NamedTuple):
    """One line of news from a running call."""

    tool: str
    message: str
    fraction: float | None = None
    tool_call_id: str = ""


class CancelToken:
    """Says that a call is to stop. Cancelling twice is the same as once; it cannot be taken back."""

    __slots__ = ("_callbacks", "_lock", "_timed_out", "cancelled", "reason")

    def __init__(self) -> None:
        self.cancelled = False
        self.reason = ""
        self._timed_out = False
        self._lock = threading.Lock()
        self._callbacks: dict[object, Callable[[], object]] = {}

    def cancel(self, reason: str = "cancelled by the caller", *, timed_out: bool = False) -> None:
        """Stop whoever listens. `timed_out`: because its time is over, which is another error than being cancelled."""
        with self._lock:
            if self.cancelled:
                return
            self.reason, self._timed_out = reason, timed_out
            self.cancelled = True
            callbacks, self._callbacks = self._callbacks, {}
        for callback in callbacks.values():
            try:
                callback()
            except Exception as error:  # noqa: BLE001  one listener's bug must not keep the others running
                log.warning("what was to happen on cancel failed: %s: %s", type(error).__name__, error)

    def on_cancel(self, callback: Callable[[], object]) -> Callable[[], object]:
        """Call `callback` once on cancel (at once if that has happened). Returns a function that takes it back."""
        with self._lock:
            if not self.cancelled:
                key = object()
                self._callbacks[key] = callback
                return lambda: self._callbacks.pop(key, None)
        callback()
        return lambda: None

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until cancelled, or for so many seconds. Whether it is cancelled."""
        event = threading.Event()
        forget = self.on_cancel(event.set)
        try:
            return event.wait(timeout)
        finally:
            forget()

    def link(self, other: CancelToken) -> Callable[[], object]:
        """Be cancelled when `other` is. Returns a function that takes it back."""
        return other.on_cancel(lambda: self.cancel(other.reason, timed_out=other._timed_out))

    def error(self) -> CallCancelled | CallTimeout:
        """What a call that was stopped by this token ends with."""
        return CallTimeout(self.reason) if self._timed_out else CallCancelled(self.reason)

    def raise_if_cancelled(self) -> None:
        if self.cancelled:
            raise self.error()


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a handler may know and use beyond its arguments.

    A handler gets it by declaring a parameter `context`; a typed tool by annotating any parameter with `ToolContext`.
    """

    tool: str = ""
    task_id: str | None = None
    session_id: str | None = None
    user_task: str | None = None
    tool_call_id: str = ""
    cancel: CancelToken = field(default_factory=CancelToken)
    on_progress: ProgressListener | None = None
    results: ResultStore | None = None
    approver: Approver | None = None
    gate: Gate | None = None
    agent: AgentState | None = None
    files: Files | None = None
    person: Person | None = None
    environments: TaskEnvironments | None = None
    processes: ProcessTable | None = None
    tools: Toolbox | None = None
    config: Config = field(default_factory=Config)

    def progress(self, message: str, fraction: float | None = None) -> None:
        """Tell whoever listens how far the call is. Never fails, costs nothing when nobody listens."""
        if self.on_progress is None:
            return
        try:
            self.on_progress(Progress(self.tool, message, fraction, self.tool_call_id))
        except Exception as error:  # noqa: BLE001  a listener's bug is not the call's
            log.warning("a progress listener failed: %s: %s", type(error).__name__, error)


class Unavailable(NamedTuple):
    """What a `check_fn` returns to say why its tool cannot be used now, and what would change that. It is falsy."""

    reason: str
    fix: str = ""

    def __bool__(self) -> bool:
        return False

    def __str__(self) -> str:
        return f"{self.reason}; {self.fix}" if self.fix else self.reason


class Resources(NamedTuple):
    """What one call reads and writes, as slash-separated names: `/srv/a` overlaps `/srv` and `/srv/a/b`."""

    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()


class ToolCall(NamedTuple):
    """One call as the model asked for it. `arguments` is what the model sent, not yet parsed."""

    name: str
    arguments: Any
    id: str = ""
