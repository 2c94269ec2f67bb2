"""Everything that the demonstration needs, made for it and gone with it: files, tools, a shell, a runtime, its results."""

from __future__ import annotations

import contextlib
import importlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from ...approval.approvers.prompt import question
from ...approval.gate import ApprovalGate
from ...base.async_bridge import run_async
from ...config import Config, cache_dir, state_dir
from ...core.builtin import registry as builtin
from ...core.registry import ToolRegistry
from ...effects.calls import Calls
from ...effects.open_call import OpenCall
from ...environments.backend_table import Backends
from ...environments.backends.local import LocalBackend
from ...environments.local_environment import LocalEnvironment
from ...environments.tasks import TaskEnvironments
from ...errors import Denied
from ...files.local import LocalFiles
from ...mcp_client.server_config import Server
from ...plugins.hook_manager import HookManager
from ...plugins.hook_specs import hookimpl
from ...processes.table import ProcessTable
from ...protocols import Action, ActionKind, ApprovalRequest, Decision, Files
from ...runtime.batches import Batches
from ...runtime.definitions import Definitions
from ...runtime.dispatch import Runtime
from ...settings.sections import TerminalConfig
from ...settings.services import McpServerConfig
from ...store.processes import ProcessRecords
from ...testing import FakeAgent, MemoryResultStore
from ...tools.mcp.server_tools import McpTools
from ...toolsets import Toolsets
from ...types import JsonDict, Unavailable
from ..output import colours, emit
from . import FOLDER_PREFIX
from .scenes import read_data

SLOW_READ_SECONDS = 0.15
# The one command that is approved. The tool runs no other: a demonstration must not depend on the gate alone.
APPROVED = "rm -rf build"
_MAX_WIDTH = 100
_TASK = "demo"
# The modules are imported by name, without a scan, which would leave its notes in the user's cache.
_MODULES = ("files.tool", "files.read_result", "agent.tool", "terminal.terminal", "terminal.process")
_TOOLS = ("read_file", "search_files", "patch", "read_result", "undo", "todo", "terminal", "process")
_NOTICE_SECONDS = 10.0
_CARRIER = Server(
    "carrier",
    McpServerConfig(
        command=sys.executable, args=("-IS", str(Path(__file__).with_name("carrier.py"))), protocol="handshake"
    ),
    "the demonstration",
)


class SlowFiles(LocalFiles):
    """A disk that takes its time for each read while `slow` is set, so that one can see what happens meanwhile."""

    slow = False

    def read(self, path: str, *, max_bytes: int, offset: int = 0) -> bytes:
        if self.slow:
            time.sleep(SLOW_READ_SECONDS)
        return super().read(path, max_bytes=max_bytes, offset=offset)


class ScriptedUser:
    """Answers from a list, at the prompt that you would get."""

    name = "person"

    def __init__(self, answers: list[Decision]) -> None:
        self._answers = answers

    def decide(self, request: ApprovalRequest) -> Decision:
        answer = self._answers.pop(0)
        width = min(shutil.get_terminal_size().columns, _MAX_WIDTH) - 1
        emit(question(request._replace(id=""), width=width, painted=colours(sys.stdout)), end="")
        emit(f"  {', '.join(decision.value for decision in request.offers)}? {answer.value}")
        return answer


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
    """A registry and a runtime of its own, on a folder of its own. `notes` is where the runtime keeps what it knows."""

    def __init__(self, folder: Path, notes: Path) -> None:
        self.folder = folder
        self.registry = _registry(folder)
        self._mcp = McpTools([_CARRIER], self.registry, folder=notes)
        self.registry.late = self._mcp.find
        self.files = SlowFiles(cwd=str(folder), roots=[str(folder)])
        self.stopwatch = Stopwatch()
        hooks = HookManager()
        hooks.register(self.stopwatch)
        self._environments = _environments(folder, notes, self.files)
        self._processes = ProcessTable(ProcessRecords(notes / "table"), self._environments)
        self._news = threading.Event()
        self._processes.on_notice(lambda _: self._news.set())
        self._effects = Calls(notes, self._environments, lambda: self._environments.config)
        runtime = Runtime(
            self.registry,
            hooks=hooks,
            results=MemoryResultStore(),
            environments=self._environments,
            processes=self._processes,
            effects=partial(OpenCall, lambda: self._effects),
            gate=ApprovalGate(),
            approver=ScriptedUser([Decision.DENY, Decision.ONCE]),
        )
        self._batches = Batches(runtime)
        self._agent = FakeAgent()
        self.tools = Definitions(self.registry, Toolsets(self.registry)).list(quiet=True)

    def run(self, tool_calls: list[JsonDict], *, slow_disk: bool = False) -> Turn:
        self.files.slow = slow_disk
        start = time.perf_counter()
        messages = run_async(self._batches.run(tool_calls, task_id=_TASK, agent=self._agent))
        took_ms = (time.perf_counter() - start) * 1000
        return Turn(messages, took_ms, self.stopwatch.times)

    def notices(self) -> list[str]:
        """The news of background processes, of which there will be some."""
        self._news.wait(_NOTICE_SECONDS)
        self._news.clear()
        return [str(notice) for notice in self._processes.drain_notices(_TASK)]

    def close(self) -> None:
        self._mcp.close()
        for process in self._processes.list():
            self._processes.forget(process.id)
        self._processes.close()
        self._environments.close_all()
        self._effects.close()


@contextlib.contextmanager
def set_stage() -> Iterator[Stage]:
    """A stage with its project, which is taken away afterwards."""
    prefix = f"{FOLDER_PREFIX}{os.getpid()}-"
    with _no_new_folders(state_dir(), cache_dir()), tempfile.TemporaryDirectory(prefix=prefix) as name:
        folder = Path(name).resolve() / "project"
        folder.mkdir()
        for path, text in read_data("project.yaml").items():
            (folder / path).parent.mkdir(exist_ok=True)
            (folder / path).write_text(text, "utf-8")
        with contextlib.closing(Stage(folder, folder.parent / "notes")) as made:
            yield made


@contextlib.contextmanager
def _no_new_folders(*folders: Path) -> Iterator[None]:
    """Take away the empty folders that a protected shell makes, as it can only be kept out of those that are there."""
    new = [each for folder in folders for each in (folder, *folder.parents) if not each.exists()]
    try:
        yield
    finally:
        for folder in sorted(new, reverse=True):
            with contextlib.suppress(OSError):  # somebody has put something there meanwhile
                folder.rmdir()


class _OnStage(LocalEnvironment):
    """A shell of this machine, that knows nothing of the user's own processes and shows its files by a slow disk."""

    def __init__(self, folder: Path, notes: Path, files: SlowFiles) -> None:
        super().__init__(str(folder), processes_dir=str(notes / "processes"))
        self._slow_files, self._notes = files, notes

    def _state_dir(self) -> Path:
        return self._notes

    @property
    def files(self) -> Files:
        return self._slow_files


def _environments(folder: Path, notes: Path, files: SlowFiles) -> TaskEnvironments:
    class Demonstration(LocalBackend):
        name = "demonstration"

        @staticmethod
        def from_settings(settings: Any, **_: Any) -> _OnStage:  # noqa: ARG004  there is but one
            return _OnStage(folder, notes, files)

        @staticmethod
        def files_before_start(settings: Any, cwd: str) -> Files:  # noqa: ARG004  the same
            return files

    backends = Backends()
    backends.add(Demonstration)
    return TaskEnvironments(Config(terminal=TerminalConfig(backend=Demonstration.name)), backends=backends)


def _registry(folder: Path) -> ToolRegistry:
    """The built-in tools and two of the demonstration's own, in a table that nobody else sees."""
    private = ToolRegistry()
    for module in _MODULES:
        importlib.import_module(f"handrail.tools.{module}")
    for tool in _TOOLS:
        entry = builtin.get_entry(tool)
        if entry is not None:
            # Whether the configured environment can be had says nothing about this one.
            properties = {**entry._asdict(), "check_fn": None}
            del properties["contract"]
            private.register(schema=entry.schema, **properties)
    _add_tools(private, folder)
    return private


def _add_tools(registry: ToolRegistry, folder: Path) -> None:
    """The demonstration's own tools."""

    def add(name: str, emoji: str, about: str, handler: Any, properties: JsonDict, **settings: Any) -> None:
        parameters = {"type": "object", "properties": properties, "required": settings.pop("required", [])}
        schema = {"description": about, "parameters": parameters}
        registry.register(
            name=name, toolset="demo", schema=schema, handler=handler, emoji=emoji, timeout=20, **settings
        )

    def shell(args: JsonDict, **_: object) -> JsonDict:
        if args["command"] != APPROVED:
            raise Denied("the demonstration runs nothing else")
        return _run(folder, "bash", "-c", args["command"])

    def run_check(args: JsonDict, **_: object) -> JsonDict:
        options = ["--summary"] if args.get("summary") else []
        return _run(folder, sys.executable, "-I", "-B", "-c", _ISOLATED, "check.py", *options)

    add(
        "shell",
        "🐚",
        "Run a command in the project.",
        shell,
        {"command": {"type": "string", "description": "What bash is to run."}},
        required=["command"],
        actions=lambda args, _: [Action(ActionKind.COMMAND, args["command"], str(folder))],
    )
    summary = {"type": "boolean", "default": False, "description": "Only say how many are wrong."}
    add("run_check", "🧪", "Run the project's check.py.", run_check, {"summary": summary})
    missing = Unavailable("there is no SHOP_TOKEN", "set SHOP_TOKEN, or let a person deploy")
    add("deploy", "🚀", "Put the shop on its server.", lambda _, **__: "never reached", {}, check_fn=lambda: missing)


def _run(folder: Path, *command: str) -> JsonDict:
    done = subprocess.run(
        command,
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
