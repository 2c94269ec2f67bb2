"""Run the calls of one message: together where that is safe, in order where it is not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextvars import ContextVar
from functools import partial
from typing import Any

from ..base.loops import CLEAN_UP_SECONDS, bounded
from ..base.workers import MAX_SECONDS
from ..core.outcome import Outcome, error_outcome
from ..errors import CallCancelled, CallTimeout, ToolError
from ..types import NO_CALLER, CancelToken, FileChange, JsonDict, ToolCall
from .async_driver import adrive, adrive_to_turn, aperform
from .call_ordering import Ordering
from .call_path import CANCEL_GRACE_SECONDS
from .dispatch import Runtime
from .fair_slots import FairSlots
from .results import fit_turn
from .steps import Call, Flow, Step, StepKind
from .tool_calls import read_call, read_calls, tool_message

_within_a_call: ContextVar[bool] = ContextVar("handrail_within_a_call", default=False)


OnStart = Callable[[str], object]
OnDone = Callable[[str, Outcome, Sequence[FileChange]], object]


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
        with self:
            return await aperform(step)

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
                    running.outcome = error_outcome(type(error)(f"{running.call.name} {error}"))
        finally:
            stop.cancel("the batch is over")
            if forget is not None:
                forget()
        return self._messages(batch)

    @staticmethod
    async def _within(stop: CancelToken, work: Coroutine[Any, Any, None], clock: _Clock) -> None:
        """Run until done, until the time is over, or until stopped: the token first, so that handlers can end well."""
        try:
            await bounded(work, timeout=None, cancel=stop, clean_up=CANCEL_GRACE_SECONDS + CLEAN_UP_SECONDS)
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
                running.outcome = await adrive_to_turn(flow, clock.perform)
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
        slots = self._slots_for(call)
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

    def _slots_for(self, call: Call) -> FairSlots:
        working, waiting, tasks = self._slots
        entry = call.entry
        if entry is None or entry.is_async:
            return working if entry is None else tasks
        return waiting if entry.waits or entry.timeout is not None else working

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
