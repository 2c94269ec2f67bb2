"""The values that travel with one call.

They are named tuples where they can be: defining a dataclass costs half a millisecond, and a start has few to spend.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from . import protocols
from .errors import CallCancelled, CallTimeout
from .settings.schema import Config

log = logging.getLogger(__name__)

JsonDict = dict[str, Any]
# Text for the model, or a multimodal result, which passes through untouched.
Outcome = str | JsonDict
ProgressListener = Callable[["Progress"], None]


class Progress(NamedTuple):
    """One line of news from a running call."""

    tool: str
    message: str
    fraction: float | None = None
    tool_call_id: str = ""


class FileChange(NamedTuple):
    """A file that a call changed. None: there was no file, or it is gone now, or it is not text, or too long to carry."""

    path: str
    before: str | None
    after: str | None


class JournalEntry(Protocol):
    """One call in a journal. `recorded` is the answer that it has already, None for a call that is to run."""

    recorded: Outcome | None

    def begin(self) -> None:
        """The call is about to act. Raises Fenced when it may not."""

    def end(self, outcome: Outcome) -> Outcome:
        """The call has acted. Returns what the model is answered."""


class CallJournal(Protocol):
    """Keeps what calls do, so that a later attempt at the same work repeats nothing."""

    def open(self, tool: str, arguments: JsonDict, *, call_id: str, toolset: str, read_only: bool) -> JournalEntry: ...


class Caller(NamedTuple):
    """What whoever makes a call brings along. `approver` and `person` are asked instead of the runtime's, `mode` holds
    instead of `approvals.mode`. `answered` are answers to questions that were previewed: with them nobody is asked.
    `on_question` is called, in the caller's loop, when the call begins to wait for an answer, `on_answer` afterwards with the
    seconds that it waited. `asked` are the questions of its message so far, by fingerprint: the same is not asked twice.
    `journal` records calls so that none acts twice."""

    approver: protocols.Approver | None = None
    person: protocols.Person | None = None
    mode: str = ""
    answered: tuple[protocols.Answer, ...] = ()
    on_question: Callable[[protocols.ApprovalRequest], object] | None = None
    asked: dict[str, tuple[protocols.ApprovalRequest, protocols.Answer]] | None = None
    on_answer: Callable[[protocols.ApprovalRequest, float], object] | None = None
    journal: CallJournal | None = None


NO_CALLER = Caller()


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


class AgentState(Protocol):
    """What the agent-level tools need of the agent that runs them."""

    @property
    def label(self) -> str:
        """What a person is told of who asks: the task of a child agent; empty for the agent that they talk to."""

    @property
    def todos(self) -> protocols.TodoList: ...

    def remember(self, store: str, action: str, *texts: str) -> tuple[Sequence[str], int, int]:
        """Add to, replace in or remove from the store "memory" or "user". What it then holds, how full it is, what fits."""

    def search_sessions(self, query: str, limit: int) -> Sequence[Mapping[str, Any]]: ...
    def recent_sessions(self, limit: int, offset: int) -> Sequence[Mapping[str, Any]]: ...
    def messages_of(self, session: str, limit: int, offset: int) -> Sequence[Mapping[str, Any]]:
        """Some messages of one session, from its beginning on."""

    def messages_around(self, message_id: int, span: int) -> Sequence[Mapping[str, Any]]: ...
    def delegate(
        self, tasks: Sequence[Mapping[str, Any]], cancel: CancelToken, tell: Callable[[str], object]
    ) -> Awaitable[Sequence[Mapping[str, Any]]]:
        """Have child agents do the tasks, beside each other; `tell` hears what they do. One answer a task, in their order."""

    def manage_children(
        self, action: str, *, tasks: Sequence[Mapping[str, Any]] = (), child: str = "", message: str = ""
    ) -> Sequence[Mapping[str, Any]]:
        """Start children in the background, or list, steer or stop them. What each of those concerned does."""


class Toolbox(Protocol):
    """The tools that the model was given, for a tool that calls others: the same dispatch, gate and budgets hold."""

    def names(self) -> frozenset[str]: ...
    def names_of(self, toolsets: Sequence[str]) -> frozenset[str]:
        """The tools of these sets, whether the model was given them or not. Raises UnknownToolset."""

    def entries(self) -> Sequence[Any]:
        """The `ToolEntry` of each tool that can be used now, sorted by name."""

    def call(self, name: str, arguments: Any, *, cancel: CancelToken | None = None, number: int = 0) -> Outcome:
        """Run one call for whoever made the call that this belongs to. `number` tells several of them apart."""

    def acall(self, name: str, arguments: Any) -> Awaitable[Outcome]:
        """The same for async tools."""


class Gate(Protocol):
    """What every dangerous thing passes before it happens."""

    def review(self, actions: Sequence[protocols.Action], context: ToolContext) -> Awaitable[None] | None:
        """Raise Denied, now or when awaited, unless all of it may happen. None: it may, and nobody had to be asked."""


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
    results: protocols.ResultStore | None = None
    approver: protocols.Approver | None = None
    gate: Gate | None = None
    agent: AgentState | None = None
    files: protocols.Files | None = None
    person: protocols.Person | None = None
    environments: protocols.Environments | None = None
    processes: protocols.Processes | None = None
    tools: Toolbox | None = None
    client: protocols.CallingClient | None = None  # None unless an MCP client made the call
    config: Config = field(default_factory=Config)
    judged_paths: tuple[str, ...] = ()  # of the files that the gate let this call write
    caller: Caller = NO_CALLER
    changes: list[FileChange] = field(default_factory=list)  # what the call did to files, for whoever made it
    effects: protocols.CallEffects | None = None  # what the call changes, if that is kept

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
