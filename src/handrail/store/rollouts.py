"""Runs of rollouts and their results, in a file that planning, running and viewing share."""

import json
import secrets
import time
from collections.abc import Mapping
from contextlib import closing
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

from ..base.own_process import has_exited, runtime_id
from ..base.suggest import did_you_mean
from ..errors import RunNotFound, StoreError
from .database import Database
from .ledger import RUNNING, WAITING, SqliteLedger

LEDGER_NAME = "ledger.db"


class RunState(Enum):
    PLANNED = "planned"
    RUNNING = "running"
    DONE = "done"
    STOPPED = "stopped"
    FAILED = "failed"  # the environment could not be used at all
    LOST = "lost"  # the process that ran it was killed


class RolloutState(Enum):
    WAITING = "waiting"
    RUNNING = "running"
    SCORED = "scored"
    FAILED = "failed"  # there is no reward; its error says why
    STOPPED = "stopped"
    LOST = "lost"


class Plan(NamedTuple):
    """What a run does. `tasks` 0 means all of the environment's; `toolsets` None means the environment's own."""

    environment: str
    model: str = ""
    backend: str = ""
    toolsets: tuple[str, ...] | None = None
    tasks: int = 0
    per_task: int = 1
    parallel: int = 2
    model_calls: int = 30
    timeout: float = 600.0


class Run(NamedTuple):
    id: str
    plan: Plan
    state: RunState
    created: float
    started: float | None
    ended: float | None
    error: str
    stop: bool
    owner: str


class Rollout(NamedTuple):
    """One agent at one task. `ended_by` is why the agent stopped."""

    run: str
    number: int
    task: str
    state: RolloutState
    reward: float | None = None
    session: str = ""
    ended_by: str = ""
    error: str = ""
    seconds: float | None = None
    model_calls: int = 0
    tokens: int = 0


class RolloutStore:
    """Threads and processes may share it. `path` None keeps it in memory."""

    def __init__(self, path: Path | None = None) -> None:
        self._database = Database(path, Path(__file__).with_suffix(".sql"))
        self._folder = Path() if path is None else path.parent

    def close(self) -> None:
        self._database.close()

    def plan(self, plan: Plan) -> Run:
        run = Run(secrets.token_hex(4), plan, RunState.PLANNED, time.time(), None, None, "", False, "")
        with self._database.transaction() as connection:
            values = (run.id, json.dumps(plan._asdict()), run.state.value, *run[3:])
            connection.execute(f"INSERT INTO runs VALUES ({', '.join('?' * len(values))})", values)
        return run

    def change(self, run_id: str, plan: Plan) -> None:
        """Raises StoreError for a run that has started."""
        query = "UPDATE runs SET plan = ? WHERE id = ? AND state = 'planned'"
        if not self._database.change(query, (json.dumps(plan._asdict()), run_id)):
            raise StoreError(f"the run {run_id} has started and cannot be changed; configure another")

    def begin(self, run_id: str) -> bool:
        """Record that this process runs it. False when it has started already."""
        query = "UPDATE runs SET state = 'running', started = ?, owner = ? WHERE id = ? AND state = 'planned'"
        return bool(self._database.change(query, (time.time(), runtime_id(), run_id)))

    def end(self, run_id: str, state: RunState, error: str = "") -> None:
        """End the run. Its rollouts that still wait or run are stopped or lost with it."""
        query = "UPDATE runs SET state = ?, ended = ?, error = ? WHERE id = ? AND ended IS NULL"
        self._database.change(query, (state.value, time.time(), error, run_id))

    def request_stop(self, run_id: str) -> None:
        self._database.change("UPDATE runs SET stop = 1 WHERE id = ?", (run_id,))

    def mark_lost(self) -> list[str]:
        """Mark the runs whose process has exited as lost. Returns their ids."""
        running = self._database.rows("SELECT id, owner FROM runs WHERE state = 'running'")
        lost = [str(row["id"]) for row in running if has_exited(row["owner"])]
        for run_id in lost:
            self.end(run_id, RunState.LOST, "the process that ran it was killed; what was scored is kept")
        return lost

    def get(self, run_id: str) -> Run:
        """Raises RunNotFound."""
        rows = self._database.rows("SELECT * FROM runs WHERE id = ?", (run_id,))
        if not rows:
            known = [run.id for run in self.all()]
            raise RunNotFound(f"no run {run_id!r}; {did_you_mean(run_id, known)}")
        return _run(rows[0])

    def all(self) -> list[Run]:
        """The latest first."""
        return [_run(row) for row in self._database.rows("SELECT * FROM runs ORDER BY created DESC, id")]

    def rollouts(self, run_id: str) -> list[Rollout]:
        """As the run's ledger has them."""
        path = self._folder / run_id / LEDGER_NAME
        if not path.exists():
            return []
        run = self.get(run_id)
        with closing(SqliteLedger(path)) as ledger:
            return [_rollout(run, each) for each in ledger.results()]


def _rollout(run: Run, result: Mapping[str, Any]) -> Rollout:
    if result["state"] in (WAITING, RUNNING):
        left = RolloutState.LOST if run.state is RunState.LOST else RolloutState.STOPPED
        state = left if run.ended is not None else RolloutState(result["state"])
        return Rollout(run.id, int(result["id"]), result["data"]["task"], state)
    state = RolloutState.FAILED if result.get("reward") is None else RolloutState.SCORED
    known = {name: result[name] for name in Rollout._fields[4:] if name in result}
    return Rollout(run.id, int(result["id"]), result["data"]["task"], state, **known)


def _run(row: Any) -> Run:
    fields = dict(row)
    plan = json.loads(fields["plan"])
    plan["toolsets"] = None if plan["toolsets"] is None else tuple(plan["toolsets"])
    state = RunState(fields["state"])
    return Run(**{**fields, "plan": Plan(**plan), "state": state, "stop": bool(fields["stop"])})
