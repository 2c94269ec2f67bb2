"""Everything that the demonstration needs, made for it and gone with it: files, tools, a runtime with its state; and what the
scripted model does there, scene by scene: `scenes.yaml`."""

import contextlib
import json
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from subprocess import DEVNULL, PIPE, STDOUT, run
from typing import Any

from ruamel.yaml import YAML

from ...app import Handrail
from ...approval.approvers.prompt import brief
from ...base.temporary_folders import temporary_folder
from ...config.paths import cache_dir, state_dir
from ...core.registry import ToolRegistry
from ...errors import Denied
from ...plugins.hook_manager import HookManager
from ...plugins.hook_specs import hookimpl
from ...protocols import Action, ActionKind, ApprovalRequest, Decision
from ...settings.schema import Config
from ...settings.sections import TerminalConfig
from ...settings.services import McpServerConfig
from ...testing import FakeAgent, ModelReply, Reply, call
from ...types import JsonDict, ToolContext, Unavailable
from ..output import colours, emit

Messages = Sequence[Mapping[str, Any]]

SLOW_READ_SECONDS = 0.15
# The one command that is approved. The tool runs no other: a demonstration must not depend on the gate alone.
APPROVED = "rm -rf build"
_MAX_WIDTH, _QUESTION_ROWS = 100, 6
_TASK = "demo"
_TOOLS = "read_file search_files patch read_result undo todo terminal process shell run_check deploy".split()
_NOTICE_SECONDS = 10.0
_CARRIER = McpServerConfig(
    command=sys.executable, args=("-I", str(Path(__file__).with_name("carrier.py"))), protocol="handshake"
)


class ScriptedUser:
    """Answers at the prompt that you would get, and says yes to one command only."""

    name = "the user"

    def decide(self, request: ApprovalRequest) -> Decision:
        answer = Decision.ONCE if request.text == APPROVED else Decision.DENY
        width, painted = min(shutil.get_terminal_size().columns, _MAX_WIDTH) - 1, colours(sys.stdout)
        asked = brief(request._replace(id=""), width=width, painted=painted, rows=_QUESTION_ROWS, diff_lines=0)
        emit(asked.text, end="")
        emit(f"  {', '.join(decision.value for decision in request.offers)}? {answer.value}")
        return answer


@dataclass(slots=True)
class Stopwatch:
    """How long each call took, in milliseconds by the call's id."""

    times: dict[str, float] = field(default_factory=dict)

    @hookimpl(inline=True)
    def post_tool_call(self, tool_call_id: str, duration_ms: float) -> None:
        self.times[tool_call_id] = duration_ms


class Stage:
    """A runtime of its own, on a folder of its own. `notes` is where it keeps its state."""

    def __init__(self, folder: Path, notes: Path) -> None:
        self.folder, self.stopwatch, self._slow = folder, Stopwatch(), False
        hooks = HookManager()
        hooks.register(self.stopwatch)
        config = Config(terminal=TerminalConfig(cwd=str(folder)), mcp_servers={"carrier": _CARRIER})
        self._app = app = Handrail(config, home=notes, hooks=hooks, approver=ScriptedUser())
        self.registry = app.registry
        _add_tools(self.registry, folder)
        self._slow_down("read_file")
        self._news = threading.Event()
        app.processes.on_notice(lambda _: self._news.set())
        self._agent = FakeAgent()
        listed = app.get_tool_definitions()
        self.tools = [tool for tool in listed if tool["function"]["name"] in _TOOLS]

    def _slow_down(self, tool: str) -> None:
        """A disk that takes its time while it is to be slow, so that one can see what happens meanwhile."""
        every = {each.name: each for each in self.registry.get_entries(self.registry.get_all_tool_names())}
        entry = every[tool]
        read = entry.handler

        def handler(args: JsonDict, *, context: ToolContext, **more: Any) -> Any:
            if self._slow:
                time.sleep(SLOW_READ_SECONDS)
            return read(args, context=context, **more)

        self.registry.restore({**every, tool: entry._replace(handler=handler)})

    def run(self, tool_calls: list[JsonDict], *, slow_disk: bool = False) -> tuple[list[JsonDict], float]:
        """What became of one message's calls, and how many milliseconds that took."""
        self._slow = slow_disk
        known, start = frozenset([*_TOOLS, "mcp__carrier__quote"]), time.perf_counter()
        messages = self._app.run_tool_calls(tool_calls, _TASK, agent=self._agent, enabled_tools=known)
        return messages, (time.perf_counter() - start) * 1000

    def notices(self) -> list[str]:
        """The news of background processes, of which there will be some."""
        self._news.wait(_NOTICE_SECONDS)
        self._news.clear()
        return [str(notice) for notice in self._app.processes.drain_notices(_TASK)]

    def close(self) -> None:
        for process in self._app.processes.list():
            self._app.processes.forget(process.id)
        self._app.close()


@contextlib.contextmanager
def set_stage() -> Iterator[Stage]:
    """A stage with its project, which is taken away afterwards."""
    with _no_new_folders(state_dir(), cache_dir()), temporary_folder("demo") as name:
        folder = Path(name).resolve() / "project"
        folder.mkdir()
        for path, text in read_data("project.yaml").items():
            (folder / path).parent.mkdir(exist_ok=True)
            (folder / path).write_text(text, "utf-8")
        with contextlib.closing(Stage(folder, folder.parent / "notes")) as made:
            yield made


@contextlib.contextmanager
def _no_new_folders(*folders: Path) -> Iterator[None]:
    """Take away the folders that a protected shell makes, as it can only be kept out of those that are there, and a cache."""
    new = [each for folder in folders for each in (folder, *folder.parents) if not each.exists()]
    try:
        yield
    finally:
        if cache_dir() in new:
            shutil.rmtree(cache_dir(), ignore_errors=True)
        for folder in sorted(new, reverse=True):
            with contextlib.suppress(OSError):  # somebody has put something there meanwhile
                folder.rmdir()


def _add_tools(registry: ToolRegistry, folder: Path) -> None:
    """The demonstration's own tools."""

    def actions(args: JsonDict, _: ToolContext) -> list[Action]:
        return [Action(ActionKind.COMMAND, args["command"], str(folder))]

    @registry.tool(toolset="demo", emoji="🐚", timeout=20, actions=actions)
    def shell(command: str) -> JsonDict:
        """Run a command in the project."""
        if command != APPROVED:
            raise Denied("the demonstration runs nothing else")
        return _run(folder, "bash", "-c", command)

    @registry.tool(toolset="demo", emoji="🧪", timeout=20)
    def run_check(summary: bool = False) -> JsonDict:
        """Run the project's check.py."""
        options = ["--summary"] if summary else []
        return _run(folder, sys.executable, "-I", "-B", "-c", _ISOLATED, "check.py", *options)

    missing = Unavailable("there is no SHOP_TOKEN", "set SHOP_TOKEN, or let a person deploy")

    @registry.tool(toolset="demo", emoji="🚀", check_fn=lambda: missing)
    def deploy() -> str:
        """Put the shop on its server."""
        return "never reached"


def _run(folder: Path, *command: str) -> JsonDict:
    done = run(command, cwd=folder, stdin=DEVNULL, stdout=PIPE, stderr=STDOUT, text=True, check=False, timeout=15)
    return {"exit_code": done.returncode, "output": done.stdout}


# Isolated from the user's environment, Python does not look into the working directory either.
_ISOLATED = "import runpy, sys; sys.path.insert(0, '.'); sys.argv = sys.argv[1:]; runpy.run_path('check.py')"


@dataclass(frozen=True, slots=True)
class Scene:
    """Replies that belong together. `scenes.yaml` says what each field is for."""

    title: str
    look: str
    replies: list[Reply]
    on_slow_disk: bool = False
    notice_before: int | None = None
    needs: str = ""
    is_highlight: bool = False


def read_data(name: str) -> Any:
    """A YAML file of the demonstration."""
    return YAML(typ="safe", pure=True).load(files(__package__).joinpath(name).read_text("utf-8"))


def read_scenes() -> tuple[str, list[Scene]]:
    """The user's task, and the scenes in their order."""
    data = read_data("scenes.yaml")
    scenes = ({**scene, "replies": [_reply(**reply) for reply in scene["replies"]]} for scene in data["scenes"])
    return data["task"], [Scene(**scene) for scene in scenes]


def _reply(says: str, calls: Sequence[Mapping[str, Any]] = ()) -> Reply:
    def reply(messages: Messages, _: Messages) -> ModelReply:
        made = [call(tool, **_filled(arguments, messages)) for each in calls for tool, arguments in each.items()]
        return ModelReply(says, made)

    return reply


def _filled(arguments: Mapping[str, Any], messages: Messages) -> dict[str, Any]:
    """The arguments with what only the results before them can say."""
    last = str(messages[-1]["content"])
    results = [each["content"] for each in reversed(messages) if each["role"] == "tool"]
    find: dict[str, Callable[[], str]] = {
        "$stored": lambda: json.loads(last)["stored"]["output"]["id"],
        "$session": lambda: next(each["session_id"] for each in map(json.loads, results) if "session_id" in each),
        "$port": lambda: last.partition(" port ")[2].split()[0],
    }

    def fill(value: Any) -> Any:
        for placeholder, found in find.items():
            if isinstance(value, str) and placeholder in value:
                value = value.replace(placeholder, found())
        return value

    return {name: fill(value) for name, value in arguments.items()}
