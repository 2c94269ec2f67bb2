"""Read a file of tasks: one JSON object per line, each an agent session."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from ..agent.budgets import Budgets
from ..base.suggest import did_you_mean
from ..errors import InvalidArguments

_LIMITS = Budgets._fields
_ID = re.compile(r"[\w.:-]{1,100}")


@dataclass(frozen=True)
class Task:
    """`environment` says where its commands run, as for `register_task_env_overrides`; `cwd` and `backend` are a part of it.
    `files` are written before the agent starts. `reward` is a command that scores what the agent has done; a mapping is for
    those who make tasks by program. `data` is for the reader of the results."""

    id: str
    prompt: str
    environment: Mapping[str, Any] = field(default_factory=dict)
    toolsets: tuple[str, ...] | None = None
    limits: Mapping[str, Any] = field(default_factory=dict)
    model: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    reward: str | Mapping[str, Any] = ""
    data: Any = None

    def as_text(self) -> str:
        return json.dumps(asdict(self), ensure_ascii=False)

    @property
    def budgets(self) -> Budgets:
        return Budgets()._replace(**dict(self.limits))


_NAMES = [each.name for each in fields(Task)]


def read_tasks(path: Path) -> Iterator[Task]:
    """The tasks of a file, one after the other. Raises InvalidArguments with the line that is wrong."""
    try:
        with open(path, encoding="utf-8") as lines:
            yield from _tasks(lines, str(path))
    except (OSError, UnicodeError) as error:
        raise InvalidArguments(f"{path} cannot be read: {error}") from None


def task_of(text: str) -> Task:
    """The task that `as_text` wrote."""
    return _task(json.loads(text), 0)


def _tasks(lines: Iterable[str], where: str) -> Iterator[Task]:
    seen: set[str] = set()
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            task = _task(json.loads(line), number)
            if task.id in seen:
                raise ValueError(f"there is a task {task.id!r} already")
        except (ValueError, TypeError, RecursionError) as error:
            raise InvalidArguments(f"{where}, line {number}: {error}") from None
        seen.add(task.id)
        yield task
    if not seen:
        raise InvalidArguments(f"{where} has no tasks; a task is a line such as {{'prompt': 'Fix the tests.'}}")


def _task(given: Any, number: int) -> Task:
    if not isinstance(given, dict):
        raise ValueError("a task is a JSON object")
    given = dict(given)
    environment = {**_mapping(given, "environment"), **{n: given.pop(n) for n in ("cwd", "backend") if n in given}}
    for name in given:
        if name not in _NAMES:
            raise ValueError(f"unknown field {name!r}; {did_you_mean(name, [*_NAMES, 'cwd', 'backend'])}")
    prompt, task_id = given.get("prompt"), str(given.get("id", number))
    if not isinstance(prompt, str) or not prompt.strip():
        raise ValueError("`prompt` is missing: the text that the agent is given")
    if not _ID.fullmatch(task_id):
        raise ValueError(f"the id {task_id[:40]!r}: use 1 to 100 letters, digits and the characters _ . : -")
    limits = _mapping(given, "limits")
    for name, value in limits.items():
        if name not in _LIMITS:
            raise ValueError(f"unknown limit {name!r}; {did_you_mean(name, _LIMITS)}")
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or value <= 0):
            raise ValueError(f"the limit {name} is a number above 0")
    files = _mapping(given, "files")
    if not all(isinstance(text, str) for pair in files.items() for text in pair):
        raise ValueError("`files` are texts by their paths")
    toolsets = given.get("toolsets")
    if toolsets is not None and not (isinstance(toolsets, list) and all(isinstance(each, str) for each in toolsets)):
        raise ValueError("`toolsets` is a list of names")
    if not isinstance(given.get("reward", ""), str | dict) or not isinstance(given.get("model", ""), str):
        raise ValueError("`reward` is a command, `model` a name")
    made = {"id": task_id, "environment": environment, "limits": limits, "files": files}
    return Task(**{**given, **made, "toolsets": None if toolsets is None else tuple(toolsets)})


def _mapping(given: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = given.get(name) or {}
    if not isinstance(value, dict):
        raise ValueError(f"`{name}` is an object")
    return value
