"""Run the calls of one message: together where that is safe, in order where it is not."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from contextvars import ContextVar
from functools import partial
from typing import Any, cast

from ..base.loops import CLEAN_UP_SECONDS, bounded
from ..base.workers import MAX_SECONDS
from ..core.outcome import Outcome, error_outcome
from ..core.registry import ToolEntry
from ..errors import CallCancelled, CallTimeout, ToolError
from ..types import NO_CALLER, CancelToken, FileChange, JsonDict, Resources, ToolCall, ToolContext
from .async_driver import adrive, aperform
from .call_path import CANCEL_GRACE_SECONDS, cut_short
from .dispatch import Runtime
from .provider_formats import read_call, read_calls, tool_message
from .results import fit_turn
from .steps import TURN, Call, Flow, Step, StepKind

_within_a_call: ContextVar[bool] = ContextVar("handrail_within_a_call", default=False)
OnStart = Callable[[str], object]
OnDone = Callable[[str, Outcome, Sequence[FileChange]], object]


class FairSlots:
    """Shares a limited number of places between sessions. One with a thousand calls waiting does not hold up another's first:
    places are given in turn."""

    def __init__(self, total: int, per_session: int) -> None:
        self._total = total
        self._per_session = per_session
        self._free = total
        self._used: dict[str, int] = {}
        self._waiting: OrderedDict[str, deque[Future[None]]] = OrderedDict()
        self._lock = threading.Lock()

    def acquire(self, session: str) -> Future[None] | None:
        """None when a place was free; else what to wait for. A wait that is given up must be cancelled."""
        with self._lock:
            if self._free and session not in self._waiting and self._used.get(session, 0) < self._per_session:
                self._take(session)
                return None
            turn: Future[None] = Future()
            self._waiting.setdefault(session, deque()).append(turn)
            return turn

    def release(self, session: str) -> None:
        with self._lock:
            self._free += 1
            self._used[session] -= 1
            if not self._used[session]:
                del self._used[session]
            granted = self._grant()
        for turn in granted:
            turn.set_result(None)

    @property
    def in_use(self) -> int:
        return self._total - self._free

    def _grant(self) -> list[Future[None]]:
        granted = []
        for session in list(self._waiting):
            if not self._free:
                break
            if self._used.get(session, 0) >= self._per_session:
                continue
            queue = self._waiting[session]
            while queue:
                turn = queue.popleft()
                if turn.set_running_or_notify_cancel():
                    self._take(session)
                    granted.append(turn)
                    break
            if queue:
                self._waiting.move_to_end(session)
            else:
                del self._waiting[session]
        return granted

    def _take(self, session: str) -> None:
        self._free -= 1
        self._used[session] = self._used.get(session, 0) + 1


class Ordering:
    """Which of a message's calls must wait for which earlier ones. Fed with calls in the model's order.

    A call waits for every earlier one that touches what it touches, where at least one of the two writes. A read-only tool
    that names no resources waits for nobody. A tool that says nothing about itself runs alone. Only what is needed is named:
    who waits for a writer need not also wait for those that the writer waited for.
    """

    def __init__(self) -> None:
        self._barrier: int | None = None
        self._since_barrier: list[int] = []
        self._forget_paths()

    def add(self, index: int, entry: ToolEntry, arguments: JsonDict, context: ToolContext | None = None) -> set[int]:
        """The earlier calls that this one must wait for, directly or through those named here."""
        if entry.resources is None and not entry.read_only:
            return self._alone(index)
        waits_for = set() if self._barrier is None else {self._barrier}
        if entry.resources is not None:
            try:
                resources = _resources(entry, arguments, context)
                reads, writes = list(map(_steps, resources.reads)), list(map(_steps, resources.writes))
            except Exception:  # noqa: BLE001  a tool that cannot say what it touches may touch anything
                return self._alone(index)
            for path in reads:
                waits_for |= self._touching(path, self._writes)
            for path in writes:
                waits_for |= self._touching(path, self._writes) | self._touching(path, self._reads)
            for path in reads:
                self._reads.note(index, path)
            for path in writes:
                self._writes.note(index, path)
        self._since_barrier.append(index)
        waits_for.discard(index)
        return waits_for

    def _alone(self, index: int) -> set[int]:
        waits_for = {*self._since_barrier} if self._barrier is None else {self._barrier, *self._since_barrier}
        self._barrier, self._since_barrier = index, []
        self._forget_paths()
        return waits_for

    def _forget_paths(self) -> None:
        self._reads, self._writes = _Accesses(), _Accesses()

    def _touching(self, path: list[str], accesses: _Accesses) -> set[int]:
        # A writer at this path or above it has already waited for everything before it that could matter here.
        covering = max((self._writes.last(step) for step in path), default=-1)
        return accesses.touching(path, since=covering)


def _resources(entry: ToolEntry, arguments: JsonDict, context: ToolContext | None) -> Resources:
    """What the call says that it touches: by its arguments, or by these and where it runs."""
    function = entry.resources
    assert function is not None
    return function(arguments, context) if len(inspect.signature(function).parameters) > 1 else function(arguments)


class _Accesses:
    """Who read, or who wrote, which names: at each name, and somewhere below it."""

    def __init__(self) -> None:
        self._at: dict[str, list[int]] = {}
        self._below: dict[str, list[int]] = {}

    def last(self, name: str) -> int:
        return self._at[name][-1] if name in self._at else -1

    def note(self, index: int, path: list[str]) -> None:
        self._at.setdefault(path[-1], []).append(index)
        for step in path[:-1]:
            self._below.setdefault(step, []).append(index)

    def touching(self, path: list[str], *, since: int) -> set[int]:
        found: set[int] = set()
        for indices in (*(self._at.get(step, ()) for step in path), self._below.get(path[-1], ())):
            for index in reversed(indices):  # in ascending order, so that the newer ones are at the end
                if index < since:
                    break
                found.add(index)
        return found


def _steps(name: str) -> list[str]:
    """A name and everything above it, from the top: "/a/b" gives "", "/a", "/a/b"."""
    parts = name.rstrip("/").split("/")
    return ["/".join(parts[: end + 1]) for end in range(len(parts))]


class _Running:
    """One call of the batch."""

    __slots__ = ("call", "changes", "outcome", "task")

    def __init__(self, call: ToolCall, outcome: Outcome | None = None) -> None:
        self.call = call
        self.outcome = outcome
        self.changes: list[FileChange] = []
        self.task: asyncio.Task[None] | None = None


class _Clock:
    """The time of a batch: it counts while any of its calls is at work. Waiting for an answer or a place costs nothing."""

    def __init__(self, limit: float, stop: CancelToken) -> None:
        self._left, self._limit, self._token = min(limit, MAX_SECONDS), limit, stop
        self._running, self._since = 0, 0.0
        self.listening = 0  # handlers that end by themselves when they are stopped, with what they have by then
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> None:
        self._running += 1
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._since = loop.time()
            self._timer = loop.call_later(max(0.0, self._left), self._is_over)

    def __exit__(self, *_: object) -> None:
        self._running -= 1
        if not self._running:
            self.stop()

    async def perform(self, step: Step) -> Any:
        """Wait for a step; for a question without counting the time."""
        if step.kind is StepKind.QUESTION:
            return await aperform(step)
        listens = step.grace > 0 and step.cancel is not None
        self.listening += listens
        try:
            with self:
                return await aperform(step)
        finally:
            self.listening -= listens

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._left -= asyncio.get_running_loop().time() - self._since

    def _is_over(self) -> None:
        self._token.cancel(f"was not done when the batch's {self._limit:g} s were over", timed_out=True)


class Batches:
    """Runs batches on one runtime, within limits that all of them share, with those of `share` if it is given."""

    def __init__(self, runtime: Runtime, share: Batches | None = None) -> None:
        calls = runtime.config.calls
        self._runtime = runtime
        # Calls that wait for a command or a server take no place of those that work: both have as many threads as they need.
        working = FairSlots(calls.max_threads, calls.max_threads_per_session)
        waiting = FairSlots(calls.max_waiting, calls.max_threads_per_session)
        tasks = FairSlots(calls.max_async, calls.max_async)
        self._slots: tuple[FairSlots, ...] = (working, waiting, tasks) if share is None else share._slots

    async def run(
        self,
        message: Any,
        *,
        timeout: float | None = None,  # noqa: ASYNC109  the batch bounds itself
        on_start: OnStart | None = None,
        on_done: OnDone | None = None,
        **who: Any,
    ) -> list[JsonDict]:
        """The tool messages for a model's message, in its order. `who` are the fields of Call that all calls share;
        `on_start` is told of each call's id when its turn has come, `on_done` of its id, outcome and changes as it ends."""
        limit = self._runtime.config.calls.batch_timeout if timeout is None else timeout
        outer: CancelToken | None = who.pop("cancel", None)
        stop = CancelToken()
        batch = [self._read(raw) for raw in read_calls(message)]
        who["caller"] = who.get("caller", NO_CALLER)._replace(asked={})
        forget = stop.link(outer) if outer is not None else None
        try:
            clock = _Clock(limit, stop)
            await self._within(stop, self._run_all(batch, {**who, "cancel": stop}, clock, on_start, on_done), clock)
        except (CallTimeout, CallCancelled) as error:
            for running in batch:
                if running.outcome is None:
                    running.outcome = cut_short(running.call.name, error)
        finally:
            stop.cancel("the batch is over")
            if forget is not None:
                forget()
        return self._messages(batch)

    @staticmethod
    async def _within(stop: CancelToken, work: Coroutine[Any, Any, None], clock: _Clock) -> None:
        """Run until done, until the time is over, or until stopped: the token first, so that handlers can end well."""
        try:
            grace = CANCEL_GRACE_SECONDS + CLEAN_UP_SECONDS
            await bounded(work, timeout=None, cancel=stop, clean_up=grace, ends_by_itself=lambda: clock.listening > 0)
        except asyncio.CancelledError:
            stop.cancel("the caller went away")
            raise
        finally:
            clock.stop()

    async def _run_all(
        self,
        batch: list[_Running],
        shared: JsonDict,
        clock: _Clock,
        on_start: OnStart | None,
        on_done: OnDone | None,
    ) -> None:
        ordering, asking = Ordering(), asyncio.Lock()
        async with asyncio.TaskGroup() as group:
            for index, running in enumerate(batch):
                if running.outcome is not None:
                    continue
                raw = running.call
                call = Call(raw.name, raw.arguments, tool_call_id=raw.id, **shared)
                call.batched, call.contained, running.changes = True, True, call.changes
                flow = self._runtime.path(call)
                # One after the other: a hook may change the arguments, and a person is asked one question at a time.
                running.outcome = cast("Outcome | None", await adrive(flow, clock.perform, stop_at=TURN))
                if running.outcome is not None or call.entry is None:
                    earlier = []
                else:
                    named = call.entry.resources is not None
                    context = self._runtime.context(call, call.cancel or CancelToken()) if named else None
                    waits_for = ordering.add(index, call.entry, call.arguments, context)
                    earlier = [task for other in waits_for if (task := batch[other].task) is not None]
                work = self._run_one(running, call, flow, earlier, (asking, clock), on_start)
                if len(batch) == 1:  # nothing to run beside it, so no task of its own
                    await work
                    _notify(running, on_done)
                    continue
                running.task = group.create_task(work)
                running.task.add_done_callback(partial(_notify, running, on_done))

    async def _run_one(
        self,
        running: _Running,
        call: Call,
        flow: Flow[Outcome],
        earlier: list[asyncio.Task[None]],
        shared: tuple[asyncio.Lock, _Clock],
        on_start: OnStart | None,
    ) -> None:
        asking, clock = shared
        if earlier:
            await asyncio.wait(earlier)
        if on_start is not None:
            on_start(running.call.id)
        if running.outcome is not None:
            return

        async def perform(step: Step) -> Any:
            if step.kind is StepKind.QUESTION:
                async with asking:  # a person is asked one question at a time
                    return await aperform(step)
            return await (self._in_slot(step, call, clock) if step.kind is StepKind.HANDLER else clock.perform(step))

        running.outcome = await adrive(flow, perform)

    async def _in_slot(self, step: Step, call: Call, clock: _Clock) -> Any:
        """Run a handler when there is a place for it. No call of a batch has the caller's thread, and who runs the batch
        cancels its tasks."""
        is_async = call.entry is not None and call.entry.is_async
        step = step._replace(in_caller=is_async, contained=True, cancel=None if is_async else step.cancel)
        if _within_a_call.get():  # its own call has a place already, and would wait here for itself
            return await clock.perform(step)
        _within_a_call.set(True)
        working, waiting, tasks = self._slots
        may_wait = call.entry is not None and (call.entry.waits or call.entry.timeout is not None)
        slots = tasks if is_async else waiting if may_wait else working
        session = call.session_id or call.task_id or ""
        turn = slots.acquire(session)
        if turn is not None:
            try:
                await asyncio.wrap_future(turn)
            except asyncio.CancelledError:
                if not turn.cancel():  # the place was given while we were being cancelled
                    slots.release(session)
                raise
        try:
            return await clock.perform(step)
        finally:
            slots.release(session)

    @staticmethod
    def _read(raw: Any) -> _Running:
        try:
            return _Running(read_call(raw))
        except ToolError as error:
            call_id = raw.get("id") if isinstance(raw, dict) else getattr(raw, "id", None)
            return _Running(ToolCall("", None, str(call_id or "")), error_outcome(error))

    def _messages(self, batch: list[_Running]) -> list[JsonDict]:
        named = [(running.call.name, running.outcome or "") for running in batch]
        budget = self._runtime.config.results.turn_max_chars
        fitted = fit_turn(named, max_chars=budget, store=self._runtime.results)
        return [tool_message(r.call.id, r.call.name, outcome) for r, outcome in zip(batch, fitted, strict=True)]


def _notify(running: _Running, on_done: OnDone | None, *_: object) -> None:
    if running.outcome is not None and on_done is not None:
        on_done(running.call.id, running.outcome, running.changes)
