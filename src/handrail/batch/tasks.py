"""Read a file of tasks: one JSON object per line, each an agent session."""

import json
import posixpath
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from ..agent.events import DEFAULT_BUDGETS, Budgets
from ..core.entry import Contract
from ..errors import InvalidArguments
from ..runtime.arguments import prepare
from ..types import JsonDict

_IN_ENVIRONMENT = ("cwd", "backend")


@dataclass(frozen=True)
class Task:
    """`environment` says where its commands run, as for `register_task_env_overrides`; `cwd` and `backend` are a part of it.
    `files` are written before the agent starts, `keep` are paths that are kept afterwards. `reward` is a command that scores
    what the agent has done; a mapping is for those who make tasks by program. `data` is for the reader of the results."""

    id: str
    prompt: str
    environment: JsonDict = field(default_factory=dict)
    toolsets: tuple[str, ...] | None = None
    limits: Budgets = DEFAULT_BUDGETS
    model: str = ""
    files: dict[str, str] = field(default_factory=dict)
    keep: tuple[str, ...] = ()
    reward: str | JsonDict = ""
    data: Any = None

    def to_json(self) -> str:
        return json.dumps({**asdict(self), "limits": self.limits._asdict()}, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "Task":
        """Raises InvalidArguments."""
        return read_task(json.loads(text))


@cache
def _contract() -> Contract:
    return Contract("batch", json.loads(Path(__file__).with_name("task_schema.json").read_text()))


def read_task(given: Any) -> Task:
    """A task as it was written. Raises InvalidArguments."""
    if isinstance(given, dict) and isinstance(given.get("environment", {}), dict):
        own = {name: given[name] for name in _IN_ENVIRONMENT if name in given}
        rest = {name: value for name, value in given.items() if name not in own}
        given = {**rest, "environment": {**given.get("environment", {}), **own}}
    fields = prepare(_contract(), given)
    for path in fields.get("keep", ()):
        if not path or path != posixpath.normpath(path) or path.startswith(("/", "..")):
            raise InvalidArguments(f"argument 'keep': {path!r} is not a path below the folder where the task works")
    toolsets = fields.get("toolsets")
    parts = {"toolsets": None if toolsets is None else tuple(toolsets), "keep": tuple(fields.get("keep", ()))}
    return Task(**{**fields, **parts, "limits": Budgets(**fields.get("limits", {}))})


def read_tasks(path: Path) -> Iterator[Task]:
    """The tasks of a file, one after the other. Raises InvalidArguments with the line that is wrong."""
    seen: set[str] = set()
    try:
        with open(path, encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    task = _read(line, number, f"{path}, line {number}")
                    if task.id in seen:
                        raise InvalidArguments(f"{path}, line {number}: there is a task {task.id!r} already")
                    seen.add(task.id)
                    yield task
    except (OSError, UnicodeError) as error:
        raise InvalidArguments(f"{path} cannot be read: {getattr(error, 'strerror', error)}") from None
    if not seen:
        raise InvalidArguments(f'{path} has no tasks; a task is a line such as {{"prompt": "Fix the tests."}}')


def _read(line: str, number: int, where: str) -> Task:
    try:
        given = json.loads(line)
        return read_task({"id": str(number), **given} if isinstance(given, dict) else given)
    except (ValueError, RecursionError) as error:
        raise InvalidArguments(f"{where}: {error}") from None
