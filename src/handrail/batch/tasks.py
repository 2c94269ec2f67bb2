"""Read a file of tasks: one JSON object per line, each an agent session."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, Field, PositiveFloat, PositiveInt, ValidationError, model_validator

from ..agent.events import DEFAULT_BUDGETS
from ..base.suggest import did_you_mean
from ..errors import InvalidArguments

_IN_ENVIRONMENT = ("cwd", "backend")


def _inside(path: str) -> str:
    if not path or path != posixpath.normpath(path) or path.startswith(("/", "..")):
        raise ValueError("a path below the folder where the task works")
    return path


class Limits(BaseModel, frozen=True, extra="forbid"):
    """As `Budgets`."""

    model_calls: PositiveInt | None = DEFAULT_BUDGETS.model_calls
    tokens: PositiveInt | None = None
    seconds: PositiveFloat | None = None
    cost: PositiveFloat | None = None


class Task(BaseModel, frozen=True, extra="forbid", coerce_numbers_to_str=True):
    """`environment` says where its commands run, as for `register_task_env_overrides`; `cwd` and `backend` are a part of it.
    `files` are written before the agent starts, `keep` are paths that are kept afterwards.
    `reward` is a command that scores what the agent has done; a mapping is for those who make tasks by program.
    `data` is for the reader of the results."""

    id: Annotated[str, Field(pattern=r"^[\w:-][\w.:-]{0,99}$")]
    prompt: Annotated[str, Field(pattern=r"\S")]
    environment: dict[str, Any] = {}
    toolsets: tuple[str, ...] | None = None
    limits: Limits = Limits()
    model: str = ""
    files: dict[str, str] = {}
    keep: tuple[Annotated[str, AfterValidator(_inside)], ...] = ()
    reward: str | dict[str, Any] = ""
    data: Any = None

    @model_validator(mode="before")
    @classmethod
    def _gather(cls, given: Any) -> Any:
        """What is about the environment may be written beside it."""
        if not isinstance(given, dict) or not isinstance(given.get("environment", {}), dict):
            return given
        own = {name: given[name] for name in _IN_ENVIRONMENT if name in given}
        rest = {name: value for name, value in given.items() if name not in own}
        return {**rest, "environment": {**given.get("environment", {}), **own}}


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
        return Task.model_validate({"id": str(number), **given} if isinstance(given, dict) else given)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"]))
        known = [*Task.model_fields, *_IN_ENVIRONMENT, *(f"limits.{each}" for each in Limits.model_fields)]
        hint = f"; {did_you_mean(name, known)}" if first["type"] == "extra_forbidden" else ""
        raise InvalidArguments(f"{where}: {name + ': ' if name else ''}{first['msg']}{hint}") from None
    except (ValueError, RecursionError) as error:
        raise InvalidArguments(f"{where}: {error}") from None
