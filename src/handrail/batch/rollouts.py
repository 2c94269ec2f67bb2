"""Rollouts are a batch with a reward function: one worker in the run's own process, whose code the environment's is. An
environment has tasks and a reward function, which are checked before any rollout starts."""

import asyncio
import importlib
import json
import shutil
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import Any, NamedTuple

from ..agent.events import Budgets
from ..agent.models.base import StreamingModel
from ..app import Handrail
from ..base.lazy_module import module_at
from ..errors import ToolFailed
from ..store.ledger import RUNNING, WAITING, SqliteLedger, work_folder
from ..store.rollouts import LEDGER_NAME, RolloutStore, Run, RunState
from ..tools.rollouts.runs import Found, folder_of
from .attempt import WITHOUT, Outcome, Parts, number_of
from .folder import Options
from .host import Host
from .tasks import Task
from .worker import Worker, leave_unattended

_DEFAULT_TOOLSETS = ("terminal", "file")
# Nobody can be asked, and a rollout leaves nothing behind but its score.
_WITHOUT = (*WITHOUT, "messaging", "delegation", "homeassistant", "skills")
_POLL_SECONDS = 0.2


class Rollouts:
    """One run in one app that nothing else uses: what would need approval is denied."""

    def __init__(
        self, app: Handrail, store: RolloutStore, run: Run, environment: "Environment", models: Sequence[StreamingModel]
    ) -> None:
        self._app, self._store, self._run, self._environment, self._models = app, store, run, environment, models
        chosen = environment.tasks[: run.plan.tasks or None]
        self._tasks = [task for task in chosen for _ in range(run.plan.per_task)]
        count, limit = len(self._tasks), app.config.rollouts.max_rollouts
        if count > limit:
            raise ToolFailed(f"{count} rollouts are more than {limit}; take fewer tasks (rollouts.max_rollouts)")
        leave_unattended(app)

    def plan(self) -> None:
        """Write the tasks into the run's ledger."""
        plan, config = self._run.plan, self._app.config
        toolsets = tuple(plan.toolsets or self._environment.toolsets or _DEFAULT_TOOLSETS)
        common: dict[str, Any] = {"toolsets": toolsets, "reward": {"environment": plan.environment}}
        common["environment"] = {"backend": plan.backend or config.rollouts.backend}
        common["limits"] = Budgets(model_calls=plan.model_calls, seconds=plan.timeout)
        with closing(SqliteLedger(folder_of(self._run.id) / LEDGER_NAME)) as ledger:
            made = (
                Task(id=str(number), prompt=task.prompt, files=dict(task.files), data={"task": task.id}, **common)
                for number, task in enumerate(self._tasks)
            )
            ledger.add((task.id, task.to_json()) for task in made)

    def run_all(self) -> RunState:
        """Run all rollouts, each recorded when it ends. Returns how the run ended."""
        run, app = self._run, self._app
        with closing(SqliteLedger(folder_of(run.id) / LEDGER_NAME)) as ledger:
            options = Options(run=run.id, attempts=1)
            host = Host(ledger, options, out=folder_of(run.id), approvals=None, setup={})
            seconds = app.config.rollouts.reward_timeout
            parts = Parts(app, run.id, lambda _: self._models, self._reward, _WITHOUT, seconds)
            worker = Worker(parts, lambda method, *given: host.handle("here", method, given), run.plan.parallel, {})
            watch = threading.Thread(target=self._watch, args=(ledger, host, worker), daemon=True)
            watch.start()
            try:
                asyncio.run(worker.run())
            finally:
                shutil.rmtree(work_folder(run.id), ignore_errors=True)
            watch.join()
        return RunState.STOPPED if self._store.get(run.id).stop else RunState.DONE

    def _watch(self, ledger: SqliteLedger, host: Host, worker: Worker) -> None:
        """Stop the worker when it is asked for, or when nothing is left to do."""
        tick = threading.Event()
        while not self._store.get(self._run.id).stop:
            counts = ledger.counts()
            if counts[WAITING] + counts[RUNNING] == 0:
                break
            tick.wait(_POLL_SECONDS)
        host.is_stopping = True
        worker.stop()

    def _reward(self, task: Task, outcome: Outcome) -> float:
        return number_of(self._environment.reward(dict(self._tasks[int(task.id)].data), outcome))


class RolloutTask(NamedTuple):
    """`data` is the task as its environment wrote it; `files` are written before the agent starts."""

    id: str
    prompt: str
    files: Mapping[str, str]
    data: Mapping[str, Any]


class Environment(NamedTuple):
    tasks: tuple[RolloutTask, ...]
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
    if twice := {task.id for task in listed if sum(other.id == task.id for other in listed) > 1}:
        raise ToolFailed(f"the environment {found.name} has several tasks named {', '.join(sorted(twice))}")
    toolsets = getattr(source, "TOOLSETS", None)
    return Environment(tuple(listed), reward, None if toolsets is None else tuple(toolsets))


def _module(found: Found) -> Any:
    if found.target:
        module, _, name = found.target.partition(":")
        loaded = importlib.import_module(module)
        return getattr(loaded, name) if name else loaded
    return module_at(f"handrail_rl_{found.name}", found.path)


def _task(number: int, task: Any) -> RolloutTask:
    written = {"prompt": task} if isinstance(task, str) else task
    where = f"task {number}"
    if not isinstance(written, Mapping) or not isinstance(written.get("prompt"), str) or not written["prompt"].strip():
        raise ToolFailed(f"{where}: a task is a text, or a mapping with the text in `prompt`")
    files = written.get("files", {})
    if not isinstance(files, Mapping) or not all(isinstance(text, str) for pair in files.items() for text in pair):
        raise ToolFailed(f"{where}: files are texts by their paths")
    data: dict[str, Any] = json.loads(json.dumps(dict(written)))  # a reward function changes only its own copy
    return RolloutTask(str(written.get("id", number)), written["prompt"], dict(files), data)
