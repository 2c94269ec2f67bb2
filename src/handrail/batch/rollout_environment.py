"""Load an environment: its tasks and its reward function, checked before any rollout starts."""

from __future__ import annotations

import importlib
import importlib.util
import json
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import ToolFailed

if TYPE_CHECKING:
    from ..tools.rollouts.environments import Found


class Task(NamedTuple):
    """`data` is the task as its environment wrote it; `files` are written before the agent starts."""

    id: str
    prompt: str
    files: Mapping[str, str]
    data: Mapping[str, Any]


class Environment(NamedTuple):
    tasks: tuple[Task, ...]
    reward: Callable[[Mapping[str, Any], Any], Any]
    toolsets: tuple[str, ...] | None


def load(found: Found) -> Environment:
    """Raises ToolFailed with what is wrong with it."""
    try:
        source = _module(found)
        tasks = source.tasks() if callable(getattr(source, "tasks", None)) else source.TASKS
        reward = source.reward
        listed = [_task(number, task) for number, task in enumerate(tasks)]
    except ToolFailed:
        raise
    except Exception as error:  # noqa: BLE001  the code of an environment may fail in any way
        raise ToolFailed(f"the environment {found.name} failed: {type(error).__name__}: {error}") from None
    if not listed:
        raise ToolFailed(f"the environment {found.name} has no tasks")
    if not callable(reward):
        raise ToolFailed(f"the reward of the environment {found.name} is not a function")
    twice = {task.id for task in listed if sum(other.id == task.id for other in listed) > 1}
    if twice:
        raise ToolFailed(f"the environment {found.name} has several tasks named {', '.join(sorted(twice))}")
    toolsets = getattr(source, "TOOLSETS", None)
    return Environment(tuple(listed), reward, None if toolsets is None else tuple(toolsets))


def number_of(value: Any) -> float:
    """A reward as a number. Raises ToolFailed for anything else."""
    if not isinstance(value, int | float) or not math.isfinite(value):
        raise ToolFailed(f"reward returned {str(value)[:80]!r}, which is not a number")
    return float(value)


def _module(found: Found) -> Any:
    if found.target:
        module, _, name = found.target.partition(":")
        loaded = importlib.import_module(module)
        return getattr(loaded, name) if name else loaded
    spec = importlib.util.spec_from_file_location(f"handrail_rl_{found.name}", found.path)
    if spec is None or spec.loader is None:
        raise ToolFailed(f"{found.path} cannot be loaded")
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def _task(number: int, task: Any) -> Task:
    written = {"prompt": task} if isinstance(task, str) else task
    where = f"task {number}"
    if not isinstance(written, Mapping) or not isinstance(written.get("prompt"), str) or not written["prompt"].strip():
        raise ToolFailed(f"{where}: a task is a text, or a mapping with the text in `prompt`")
    files = written.get("files", {})
    if not isinstance(files, Mapping) or not all(isinstance(text, str) for pair in files.items() for text in pair):
        raise ToolFailed(f"{where}: files are texts by their paths")
    data: dict[str, Any] = json.loads(json.dumps(dict(written)))  # a reward function changes only its own copy
    return Task(str(written.get("id", number)), written["prompt"], dict(files), data)
