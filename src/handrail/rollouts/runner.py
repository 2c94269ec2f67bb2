"""Run the rollouts of one run: one agent, environment and reward per rollout, several at a time."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from ..agent.agent import Agent
from ..agent.budgets import Budgets
from ..agent.events import End, TurnEnded
from ..agent.memory import Memory
from ..agent.models.base import StreamingModel
from ..app import Handrail
from ..base.workers import pool
from ..errors import HandrailError, ToolFailed
from ..store.rollouts import Rollout, RolloutState, RolloutStore, Run, RunState
from ..store.sessions import SessionStore
from ..tools.rollouts.runs import SESSIONS_NAME, folder_of
from .environment import Environment, Task, number_of

_DEFAULT_TOOLSETS = ("terminal", "file")
# Nobody can be asked, and a rollout leaves nothing behind but its score.
_WITHOUT = (
    "clarify",
    "memory",
    "messaging",
    "cronjob",
    "delegation",
    "rl",
    "homeassistant",
    "session_search",
    "skills",
)
_POLL_SECONDS = 0.2


class Outcome(NamedTuple):
    """What a reward function gets besides the task. `run` and `read` work in the rollout's environment."""

    answer: str
    messages: list[dict[str, Any]]
    ended_by: str
    model_calls: int
    app: Handrail
    task_id: str

    def run(self, command: str, timeout: float = 60.0) -> tuple[int | None, str]:
        """The exit code and the output of a command; of a very long one the head and the tail."""
        with self.app.environments.use(self.task_id) as environment:
            done = environment.execute(command, timeout=timeout)
        return done.exit_code, (done.output.head + done.output.tail).decode("utf-8", "replace")

    def read(self, path: str) -> str:
        """The text of a file; raises FileNotFoundError."""
        files = self.app.environments.files(self.task_id)
        if files.stat(path) is None:
            raise FileNotFoundError(path)
        return files.read(path, max_bytes=files.max_read_bytes).decode("utf-8", "replace")


class Rollouts:
    """One run in one app that nothing else uses: what would need approval is denied."""

    def __init__(
        self, app: Handrail, store: RolloutStore, run: Run, environment: Environment, models: list[StreamingModel]
    ) -> None:
        self._app, self._store, self._run, self._environment, self._models = app, store, run, environment, models
        chosen = environment.tasks[: run.plan.tasks or None]
        self.tasks = [task for task in chosen for _ in range(run.plan.per_task)]
        max_rollouts = app.config.rollouts.max_rollouts
        if len(self.tasks) > max_rollouts:
            raise ToolFailed(
                f"{len(self.tasks)} rollouts are more than {max_rollouts}; take fewer tasks (rollouts.max_rollouts)"
            )
        self._agents: set[Agent] = set()
        self._stopped = False
        app.runtime.approver = app.runtime.person = None
        app.gate.settings.leave_unattended()

    async def run_all(self) -> RunState:
        """Run all rollouts, each recorded when it ends. Returns how the run ended."""
        slots = asyncio.Semaphore(self._run.plan.parallel)
        with closing(SessionStore(folder_of(self._run.id) / SESSIONS_NAME)) as sessions:

            async def one(number: int, task: Task) -> None:
                async with slots:
                    if not self._stopped:
                        await self._one(number, task, sessions)

            watch = asyncio.create_task(self._watch())
            try:
                await asyncio.gather(*(one(number, task) for number, task in enumerate(self.tasks)))
            finally:
                watch.cancel()
        return RunState.STOPPED if self._stopped else RunState.DONE

    async def _watch(self) -> None:
        while not self._stopped:
            await asyncio.sleep(_POLL_SECONDS)
            self._stopped = self._store.get(self._run.id).stop
        while True:  # also agents that were about to start
            for agent in list(self._agents):
                agent.interrupt("the run was stopped")
            await asyncio.sleep(_POLL_SECONDS)

    async def _one(self, number: int, task: Task, sessions: SessionStore) -> None:
        folder = tempfile.mkdtemp(prefix="handrail-rollout-")
        rollout = Rollout(self._run.id, number, task.id, RolloutState.RUNNING, folder=folder)
        began = time.monotonic()
        try:
            self._store.note(rollout)
            rollout = await self._tried(rollout, task, sessions)
        except HandrailError as error:
            rollout = rollout._replace(state=RolloutState.FAILED, error=str(error))
        finally:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        self._store.note(rollout._replace(seconds=round(time.monotonic() - began, 3), folder=""))

    async def _tried(self, rollout: Rollout, task: Task, sessions: SessionStore) -> Rollout:
        agent = await asyncio.to_thread(self._agent, rollout.folder, sessions)
        self._agents.add(agent)
        rollout = rollout._replace(session=agent.session_id)
        try:
            await asyncio.to_thread(self._put, agent.session_id, task.files)
            ended, is_late = await self._asked(agent, task)
            rollout = rollout._replace(
                ended_by="time" if is_late else ended.end.value,
                model_calls=ended.model_calls,
                tokens=ended.usage.input_tokens + ended.usage.output_tokens,
            )
            if self._stopped:
                return rollout._replace(state=RolloutState.STOPPED)
            if ended.end is End.FAILED:
                return rollout._replace(state=RolloutState.FAILED, error=ended.reason)
            return await self._scored(rollout, task, ended, sessions)
        finally:
            self._agents.discard(agent)
            await asyncio.to_thread(self._close, agent)

    def _agent(self, folder: str, sessions: SessionStore) -> Agent:
        plan, config = self._run.plan, self._app.config
        backend = plan.backend or config.rollouts.backend
        environment: dict[str, Any] = {"backend": backend}
        if backend == "local":
            environment |= {"sandbox": True, "cwd": folder}
        return Agent(
            self._app,
            self._models,
            store=sessions,
            toolsets=plan.toolsets or self._environment.toolsets or _DEFAULT_TOOLSETS,
            without=(*config.tools.disabled_toolsets, *_WITHOUT),
            budgets=Budgets(model_calls=plan.model_calls, seconds=plan.timeout),
            platform="rollout",
            cwd=folder,
            memory=Memory(Path(folder) / ".none"),
            environment=environment,
        )

    def _put(self, task_id: str, files: Mapping[str, str]) -> None:
        for path, text in files.items():
            self._app.environments.files(task_id).write(path, text.encode())

    async def _asked(self, agent: Agent, task: Task) -> tuple[TurnEnded, bool]:
        """How the agent ended, and whether it timed out."""
        late: list[bool] = []

        def over() -> None:
            late.append(True)
            agent.interrupt("this rollout timed out")

        timer = asyncio.get_running_loop().call_later(self._run.plan.timeout, over)
        try:
            ended = await agent.arun(task.prompt)
        finally:
            timer.cancel()
        return ended, bool(late) or ended.end is End.TIME

    async def _scored(self, rollout: Rollout, task: Task, ended: TurnEnded, sessions: SessionStore) -> Rollout:
        messages = [stored.message for stored in sessions.messages(rollout.session)]
        outcome = Outcome(ended.answer, messages, rollout.ended_by, ended.model_calls, self._app, rollout.session)
        seconds = self._app.config.rollouts.reward_timeout
        work = asyncio.wrap_future(pool.submit(self._environment.reward, dict(task.data), outcome))
        try:
            reward = number_of(await asyncio.wait_for(work, seconds))
        except TimeoutError:
            return rollout._replace(state=RolloutState.FAILED, error=f"reward timed out after {seconds:g} s")
        except Exception as error:  # noqa: BLE001  a reward function may fail in any way, and the others go on
            reason = str(error) if isinstance(error, ToolFailed) else f"reward failed: {type(error).__name__}: {error}"
            return rollout._replace(state=RolloutState.FAILED, error=reason)
        return rollout._replace(state=RolloutState.SCORED, reward=reward)

    def _close(self, agent: Agent) -> None:
        for process in self._app.processes.list(agent.session_id):
            process.kill()
        agent.close()
