"""Figures of hooks: what one costs a call, and that none costs nothing."""

from __future__ import annotations

from collections.abc import Iterator

from handrail.core.registry import ToolRegistry
from handrail.plugins.hook_manager import HookManager
from handrail.runtime.dispatch import Runtime

from . import samples
from .harness import Batch, Figure, microseconds, paired

_LIMIT_SECONDS = 5e-6


def figures() -> Iterator[Figure]:
    registry = ToolRegistry()
    registry.register(name="bench_sync", toolset="bench", schema=samples.schema("bench_sync"), handler=samples.handler)
    plain, idle, hooked = (Runtime(registry, hooks=HookManager()) for _ in range(3))
    hooked.hooks.register_hook("pre_tool_call", lambda tool_name: None, inline=True)
    idle.hooks.unregister(idle.hooks.register_hook("pre_tool_call", lambda: None))

    def calls(runtime: Runtime) -> Batch:
        def batch(count: int) -> None:
            for _ in range(count):
                runtime.handle("bench_sync", samples.ARGUMENTS)

        return batch

    mine, floor, ratio = paired(calls(idle), calls(plain))
    yield Figure("a call where hooks were, and are no more", microseconds(mine), microseconds(floor), ratio, 1.05)
    mine, floor, _ = paired(calls(hooked), calls(plain))
    cost = mine - floor
    yield Figure(
        "one hook, beyond the call", microseconds(cost), microseconds(_LIMIT_SECONDS), cost / _LIMIT_SECONDS, 1
    )
