"""Rollouts are a batch with a reward function: one worker in the run's own process, whose code the environment's is."""

from __future__ import annotations

import asyncio
import shutil
import threading
from collections.abc import Sequence
from contextlib import closing
from typing import Any

from ..agent.models.base import StreamingModel
from ..app import Handrail
from ..errors import ToolFailed
from ..store.ledger import RUNNING, WAITING, SqliteLedger, work_folder
from ..store.rollouts import LEDGER_NAME, RolloutStore, Run, RunState
from ..tools.rollouts.runs import folder_of
from .attempt import WITHOUT, Outcome, Parts
from .host import Host, Settings
from .rollout_environment import Environment, number_of
from .tasks import Task
from .worker import Worker, leave_unattended

_DEFAULT_TOOLSETS = ("terminal", "file")
# Nobody can be asked, and a rollout leaves nothing behind but its score.
_WITHOUT = (*WITHOUT, "messaging", "delegation", "homeassistant", "skills")
_POLL_SECONDS = 0.2


class Rollouts:
    """One run in one app that nothing else uses: what would need approval is denied."""

    def __init__(
        self, app: Handrail, store: RolloutStore, run: Run, environment: Environment, models: Sequence[StreamingModel]
    ) -> None:
        self._app, self._store, self._run, self._environment, self._models = app, store, run, environment, models
        chosen = environment.tasks[: run.plan.tasks or None]
        self._tasks = [task for task in chosen for _ in range(run.plan.per_task)]
        max_rollouts = app.config.rollouts.max_rollouts
        if len(self._tasks) > max_rollouts:
            raise ToolFailed(
                f"{len(self._tasks)} rollouts are more than {max_rollouts}; take fewer tasks (rollouts.max_rollouts)"
            )
        leave_unattended(app)

    def plan(self) -> None:
        """Write the tasks into the run's ledger."""
        plan, config = self._run.plan, self._app.config
        toolsets = tuple(plan.toolsets or self._environment.toolsets or _DEFAULT_TOOLSETS)
        common: dict[str, Any] = {"toolsets": toolsets, "reward": {"environment": plan.environment}}
        common["environment"] = {"backend": plan.backend or config.rollouts.backend}
        common["limits"] = {"model_calls": plan.model_calls, "seconds": plan.timeout}
        with closing(self._ledger()) as ledger:
            made = (
                Task(id=str(number), prompt=task.prompt, files=dict(task.files), data={"task": task.id}, **common)
                for number, task in enumerate(self._tasks)
            )
            ledger.add((task.id, task.model_dump_json()) for task in made)

    def run_all(self) -> RunState:
        """Run all rollouts, each recorded when it ends. Returns how the run ended."""
        run, app = self._run, self._app
        with closing(self._ledger()) as ledger:
            host = Host(ledger, Settings(run.id, attempts=1), out=folder_of(run.id), approvals=None)
            seconds = app.config.rollouts.reward_timeout
            parts = Parts(app, run.id, lambda _: self._models, self._reward, _WITHOUT, seconds)
            worker = Worker(parts, _Direct(host), run.plan.parallel, {})
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

    def _ledger(self) -> SqliteLedger:
        return SqliteLedger(folder_of(self._run.id) / LEDGER_NAME)


class _Direct:
    """A link within one process."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def call(self, method: str, *arguments: Any) -> Any:
        return self._host.handle("here", method, arguments)
