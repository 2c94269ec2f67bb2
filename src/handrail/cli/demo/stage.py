"""Everything that the demonstration needs, made for it and gone with it: files, tools, a runtime, its results."""

from __future__ import annotations

import contextlib
import importlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...async_bridge import run_async
from ...plugins.hooks import hookimpl
from ...plugins.manager import HookManager
from ...protocols import Decision
from ...runtime.concurrency import Batches
from ...runtime.definitions import Definitions
from ...runtime.dispatch import Runtime
from ...testing import FakeAgent, MemoryResultStore
from ...tools.approval.gate import ApprovalGate
from ...tools.files.local import LocalFiles
from ...tools.registry import ToolRegistry
from ...tools.registry import registry as builtin
from ...toolsets import Toolsets
from ...types import JsonDict, Unavailable
from . import project
from .approval import PlayedPerson, add_shell

SLOW_READ_SECONDS = 0.15
# The modules are imported by name, without a scan, which would leave its notes in the user's cache.
_TOOLS = ("read_file", "search_files", "patch", "read_result", "todo")


class SlowFiles(LocalFiles):
    """A disk that takes its time for each read while `slow` is set, so that one can see what happens meanwhile."""

    slow = False

    def read(self, path: str, *, max_bytes: int, offset: int = 0) -> bytes:
        if self.slow:
            time.sleep(SLOW_READ_SECONDS)
        return super().read(path, max_bytes=max_bytes, offset=offset)


@dataclass(slots=True)
class Stopwatch:
    """How long each call took, in milliseconds by the call's id."""

    times: dict[str, float] = field(default_factory=dict)

    @hookimpl(inline=True)
    def post_tool_call(self, tool_call_id: str, duration_ms: float) -> None:
        self.times[tool_call_id] = duration_ms


@dataclass(frozen=True, slots=True)
class Turn:
    """What became of one message's calls."""

    messages: list[JsonDict]
    took_ms: float
    times: dict[str, float]


class Stage:
    """A registry and a runtime of its own, on a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.registry = _registry(folder)
        self.files = SlowFiles(cwd=str(folder), roots=[str(folder)])
        self.stopwatch = Stopwatch()
        hooks = HookManager()
        hooks.register(self.stopwatch)
        runtime = Runtime(
            self.registry,
            hooks=hooks,
            results=MemoryResultStore(),
            files=self.files,
            gate=ApprovalGate(),
            approver=PlayedPerson([Decision.DENY, Decision.ONCE]),
        )
        self._batches = Batches(runtime)
        self._agent = FakeAgent()
        self.tools = Definitions(self.registry, Toolsets(self.registry)).list(quiet=True)

    def run(self, tool_calls: list[JsonDict], *, slow_disk: bool = False) -> Turn:
        self.files.slow = slow_disk
        start = time.perf_counter()
        messages = run_async(self._batches.run(tool_calls, task_id="demo", agent=self._agent))
        took_ms = (time.perf_counter() - start) * 1000
        return Turn(messages, took_ms, self.stopwatch.times)


@contextlib.contextmanager
def stage() -> Iterator[Stage]:
    """A stage with its project, which is taken away afterwards."""
    with tempfile.TemporaryDirectory(prefix="handrail-demo-") as name:
        folder = Path(name).resolve()
        project.create(folder)
        yield Stage(folder)


def _registry(folder: Path) -> ToolRegistry:
    """The built-in tools and two of the demonstration's own, in a table that nobody else sees."""
    private = ToolRegistry()
    for tool in _TOOLS:
        importlib.import_module(f"handrail.tools.{tool}_tool")
        entry = builtin.get_entry(tool)
        if entry is not None:
            properties = {name: value for name, value in entry._asdict().items() if name != "contract"}
            private.register(schema=entry.schema, **properties)
    add_shell(private, folder)
    summary = {"type": "boolean", "default": False, "description": "Only say how many are wrong."}
    private.register(
        name="run_check",
        toolset="demo",
        schema={
            "description": "Run the project's check.py.",
            "parameters": {"type": "object", "properties": {"summary": summary}},
        },
        handler=lambda args, **_: _run_check(folder, args),
        emoji="🧪",
        timeout=20,
    )
    private.register(
        name="deploy",
        toolset="demo",
        schema={"description": "Put the shop on its server."},
        handler=lambda _, **__: "never reached",
        check_fn=lambda: Unavailable("there is no SHOP_TOKEN", "set SHOP_TOKEN, or let a person deploy"),
        emoji="🚀",
    )
    return private


def _run_check(folder: Path, args: JsonDict) -> JsonDict:
    command: list[Any] = [sys.executable, "-I", "-B", "-c", _ISOLATED, "check.py"]
    done = subprocess.run(
        [*command, *(["--summary"] if args.get("summary") else [])],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=15,
    )
    return {"exit_code": done.returncode, "output": done.stdout}


# Isolated from the user's environment, Python does not look into the working directory either.
_ISOLATED = "import runpy, sys; sys.path.insert(0, '.'); sys.argv = sys.argv[1:]; runpy.run_path('check.py')"
