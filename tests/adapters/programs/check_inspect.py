"""Inspect's own checks of a sandbox provider, on the sandbox that the plan says."""

from __future__ import annotations

import asyncio
import json
import os
import traceback

from inspect_ai._util.entrypoints import ensure_entry_points
from inspect_ai.util._sandbox import self_check
from inspect_ai.util._sandbox.environment import resolve_sandbox_environment
from inspect_ai.util._sandbox.registry import registry_find_sandboxenv

PLAN = json.loads(os.environ["PLAN"])


async def main() -> None:
    ensure_entry_points()
    kind = registry_find_sandboxenv("handrail")
    settings = kind.config_deserialize(PLAN["settings"])
    spec = resolve_sandbox_environment(("handrail", settings) if settings else "handrail")
    made = await kind.sample_init("check", spec.config, {})
    failed = {}
    names = [name for name in self_check.__all__ if PLAN.get("only") in (None, name)]
    for name in names:
        try:
            await getattr(self_check, name)(made["default"])
        except BaseException as error:
            failed[name] = "".join(traceback.format_exception(error))[-1500:]
    await kind.sample_cleanup("check", spec.config, made, False)
    print(json.dumps({"count": len(names), "failed": failed}))


asyncio.run(main())
