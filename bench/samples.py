"""The tools that are measured, and the same work without a runtime."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "File path"},
        "count": {"type": "integer", "description": "How many"},
        "flag": {"type": "boolean", "description": "A flag"},
    },
    "required": ["path", "count"],
}
ARGUMENTS = json.dumps({"path": "/tmp/some/file.txt", "count": 3, "flag": True})
SLEEP_SECONDS = 0.05


def work(path: str, count: int, flag: bool = False) -> str:
    return "ok"


async def awork(path: str, count: int, flag: bool = False) -> str:
    return "ok"


def handler(args: dict[str, Any], **_: Any) -> str:
    return work(**args)


async def ahandler(args: dict[str, Any], **_: Any) -> str:
    return await awork(**args)


def sleeping(args: dict[str, Any], **_: Any) -> str:
    time.sleep(SLEEP_SECONDS)
    return "ok"


async def asleeping(args: dict[str, Any], **_: Any) -> str:
    await asyncio.sleep(SLEEP_SECONDS)
    return "ok"


def schema(name: str) -> dict[str, Any]:
    return {"name": name, "description": "Do nothing.", "parameters": SCHEMA}
