"""A call's flow is written once, as a generator of steps; who drives it decides whether waiting blocks a thread or a task."""

from __future__ import annotations

import itertools
import time
from collections.abc import Awaitable, Callable, Generator
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from ..base.workers import is_being_ended, is_interrupt, run_async, run_bounded
from ..errors import ToolFailed
from ..protocols import CallEffects, CallingClient, ResultStore
from ..types import (
    NO_CALLER,
    AgentState,
    Caller,
    CancelToken,
    FileChange,
    Gate,
    JournalEntry,
    JsonDict,
    ProgressListener,
    ToolContext,
)

if TYPE_CHECKING:
    from ..core.entry import ToolEntry
    from ..core.registry import ToolRegistry
    from ..plugins.hook_manager import HookManager
    from ..settings.schema import Config

T = TypeVar("T")
_numbers = itertools.count(1)
# It yields steps, and what an async handler returned, to be awaited.
Flow = Generator["Step | Awaitable[Any]", Any, T]


class Call:
    """The caller's fields are those of `__init__`; the wrappers of the call path fill in the rest."""

    arguments: JsonDict
    entry: ToolEntry | None = None
    blocked = False
    edits = 0  # how often a user changed it instead of saying yes
    judged_paths: tuple[str, ...] = ()  # of the files that the gate let it write
    contained = False  # leaving the program is not the handler's to decide
    effects: CallEffects | None = None
    journal_entry: JournalEntry | None = None
    is_rewritten = False  # by a plugin's middleware, which is not called again
    batched = False  # it shares the machine with other calls of its message
    context: ToolContext | None = None  # given by who dispatches on a bare registry
    stop: CancelToken | None = None  # of this call alone, once it is at the gate
    made_context: ToolContext | None = None
    extra: JsonDict | None = None  # further keyword arguments for the handler, likewise

    def __init__(  # noqa: PLR0913  one per fact about the caller
        self,
        name: str,
        raw: Any,
        task_id: str | None = None,
        user_task: str | None = None,
        session_id: str | None = None,
        *,
        tool_call_id: str = "",
        cancel: CancelToken | None = None,
        on_progress: ProgressListener | None = None,
        agent: AgentState | None = None,
        enabled_tools: frozenset[str] | None = None,
        caller: Caller = NO_CALLER,
        client: CallingClient | None = None,
    ) -> None:
        self.number = next(_numbers)
        self.name, self.raw = name, raw  # `raw`: the arguments as the model sent them
        self.task_id, self.user_task, self.session_id = task_id, user_task, session_id
        self.tool_call_id, self.cancel, self.on_progress, self.agent = tool_call_id, cancel, on_progress, agent
        # All tools that the model was given; None: those that the configuration gives.
        self.enabled_tools = enabled_tools
        self.caller = caller
        self.changes: list[FileChange] = []
        self.client = client
        self.arguments = {}
        self.started = time.perf_counter()


class Services(Protocol):
    """What the wrappers of the call path use. A runtime is one."""

    registry: ToolRegistry
    config: Config
    hooks: HookManager
    uses: dict[str, int]  # how often each tool was called
    results: ResultStore | None
    gate: Gate | None

    @property
    def own_gate(self) -> Gate: ...
    def context(self, call: Call, cancel: CancelToken, /) -> ToolContext: ...


class Foreign(Exception):  # not an error of ours
    """Wraps what a handler, a hook or an approver raised. A StopIteration, a cancellation or a timeout of its own would mean
    something else to whoever waits for it."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(type(error).__name__)  # its own text may fail to be made
        self.error = error


def cause(error: BaseException) -> BaseException:
    """The error itself, without the wrapper."""
    return error.error if isinstance(error, Foreign) else error


class StepKind(Enum):
    """What a step is for, so that who drives several flows can take turns."""

    WORK = "work"
    TURN = "turn"  # the call is ready: it waits for earlier calls of its message
    QUESTION = "question"  # somebody may be asked
    HANDLER = "handler"  # the tool itself


class Step(NamedTuple):
    """Something to wait for: a function without arguments, which may return an awaitable."""

    function: Callable[[], Any]
    timeout: float | None = None
    cancel: CancelToken | None = None
    # In the caller's own thread at no extra cost; else on a worker, so that it can be left behind.
    in_caller: bool = True
    # It may block for long: a sync caller asked for that, an event loop's thread has others to serve.
    may_block: bool = False
    # Leaving the program is not this step's to decide: sys.exit becomes an error. Always so on a worker and in a loop.
    contained: bool = False
    # In a loop: all of it on a worker, also what it awaits, so that it cannot reach the caller's loop.
    apart: bool = False
    # Seconds that a worker which notices the cancel may take to end by itself, with what it has so far.
    grace: float = 0
    kind: StepKind = StepKind.WORK
    # In a loop, instead of the function on a worker: what to await, or None if it takes a worker now.
    in_loop: Callable[[], Awaitable[Any] | None] | None = None


def _nothing() -> None:
    """What a step does that only marks a place."""


TURN = Step(_nothing, kind=StepKind.TURN)
_AWAITED = Step(_nothing)


def drive(flow: Flow[T]) -> T:
    """Run a flow from sync code."""
    try:
        step = flow.send(None)
        while True:
            try:
                value = _perform(step)
            except BaseException as error:  # noqa: BLE001  the flow decides what becomes of it
                step = flow.throw(error)
            else:
                step = flow.send(value)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


def _perform(step: Step | Awaitable[Any]) -> Any:
    if not isinstance(step, Step):
        value: Any = step
        step = _AWAITED
    elif step.in_caller:
        value = guarded(step.function, contained=step.contained)
    else:
        work = partial(guarded, step.function, contained=True)
        value = run_bounded(work, timeout=step.timeout, cancel=step.cancel, grace=step.grace)
    if hasattr(value, "__await__"):
        return run_async(aguarded(value, contained=step.contained), timeout=step.timeout, cancel=step.cancel)
    return value


def guarded(function: Callable[[], Any], *, contained: bool = False) -> Any:
    try:
        return function()
    except BaseException as error:  # noqa: BLE001  what others' code raises must not pass for something of ours
        raise foreign(error, contained=contained) from None


async def aguarded(awaitable: Awaitable[Any], *, contained: bool) -> Any:
    try:
        return await awaitable
    except BaseException as error:  # noqa: BLE001  likewise
        raise foreign_await(error, contained=contained) from None


def foreign_await(error: BaseException, *, contained: bool) -> BaseException:
    """`foreign` for what an awaitable raised. That its task is being cancelled or closed passes."""
    return error if is_being_ended(error) else foreign(error, contained=contained)


def foreign(error: BaseException, *, contained: bool) -> BaseException:
    """What to raise instead of it. Only the program's own Ctrl-C passes; in the caller's thread also what means to end it."""
    if not isinstance(error, KeyboardInterrupt | SystemExit | GeneratorExit):
        return Foreign(error)
    if isinstance(error, KeyboardInterrupt | SystemExit) and (not contained or is_interrupt(error)):
        return error
    did = f"called sys.exit({error.code!r})" if isinstance(error, SystemExit) else f"raised {type(error).__name__}"
    return Foreign(ToolFailed(f"the handler {did}"))


def caught(call: Call, error: BaseException) -> BaseException:
    """The error itself, without its wrapper. Raises what is not the call's to decide: the caller's own cancel, Ctrl-C or exit."""
    if isinstance(error, Exception):
        return cause(error)
    if not call.contained or is_being_ended(error) or is_interrupt(error):
        raise error
    return cause(foreign(error, contained=True))
