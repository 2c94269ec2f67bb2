"""Drive a call's flow in the running loop; waiting holds no thread."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any, TypeVar

from ..base.async_bridge import is_being_cancelled
from ..base.loops import bounded
from ..base.workers import pool
from ..errors import CallCancelled, CallTimeout
from .steps import Flow, Foreign, Step, foreign, guarded

T = TypeVar("T")


async def adrive(flow: Flow[T]) -> T:
    """Run a flow in the running loop."""
    try:
        step = flow.send(None)
        while True:
            try:
                value = await _aperform(step)
            except BaseException as error:  # noqa: BLE001  the flow decides what becomes of it
                step = flow.throw(error)
            else:
                step = flow.send(value)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


async def _aperform(step: Step) -> Any:
    is_here = step.in_caller and not step.may_block
    value = guarded(step.function, contained=step.contained) if is_here else await _on_worker(step)
    if not hasattr(value, "__await__"):
        return value
    if step.timeout is None and step.cancel is None:
        return await aguarded(value, contained=step.contained)
    return await bounded(aguarded(value, contained=step.contained), timeout=step.timeout, cancel=step.cancel)


async def _on_worker(step: Step) -> Any:
    future = pool.submit(partial(guarded, step.function, contained=True))
    try:
        return await bounded(asyncio.wrap_future(future), timeout=step.timeout, cancel=step.cancel)
    except (CallCancelled, CallTimeout):
        if step.cancel is None or not step.cancel.cancelled or not step.grace:
            raise
        done, _ = await asyncio.wait([asyncio.wrap_future(future)], timeout=step.grace)
        if not done:
            raise
        return future.result()


async def aguarded(awaitable: Any, *, contained: bool) -> Any:
    try:
        return await awaitable
    except asyncio.CancelledError as error:
        if is_being_cancelled():
            raise
        raise Foreign(error) from None
    except BaseException as error:  # noqa: BLE001  what others' code raises must not pass for something of ours
        raise foreign(error, contained=contained) from None
