"""One attempt at one task: an agent with an environment of its own, from its prompt to its reward. Its journal knows what
earlier attempts did, and answers that as they recorded it: a finished call returns its recorded result. One that was begun runs
again if it only reads, or if all that it could change died with its worker; else nobody knows whether it was done, and the
model is told so. An environment that died is made again by running the finished calls in it, with the results that they had."""

import asyncio
import contextlib
import hashlib
import json
import math
import os
import shutil
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..agent.agent import Agent
from ..agent.events import End, TurnEnded, Usage
from ..agent.memory import Memory
from ..agent.models.base import CallPiece, Finished, Messages, PartialAnswer, Piece, StreamingModel, TextPiece
from ..agent.telemetry import Telemetry
from ..app import Handrail
from ..base.workers import pool
from ..core.outcome import error_outcome
from ..environments.backend_table import is_host
from ..errors import HandrailError, StoreError, ToolFailed, UnknownOutcome
from ..protocols import ApprovalRequest
from ..store.ledger import JournalRow, Lease, work_folder
from ..store.sessions import SessionStore
from ..types import Caller, JsonDict
from ..types import Outcome as CallOutcome
from .folder import Artifacts
from .host import Call
from .tasks import Task

# Nobody talks with these agents, and they leave nothing behind but their work.
WITHOUT = ("clarify", "memory", "cronjob", "rl", "session_search")
_REWARD_SECONDS = 600.0
_MAX_ANSWER = 20_000
Models = Callable[[str], Sequence[StreamingModel]]
Reward = Callable[[Task, "Outcome"], Any]
# The tools that act in the environment of their session.
_IN_ENVIRONMENT = frozenset({"terminal", "file", "code_execution"})
_RETRY_SECONDS = 1.0
_UNKNOWN = "the worker was lost while {tool} ran, and nobody knows whether it was done; look before you do it again"


class Outcome(NamedTuple):
    """What a reward is computed from. `run` and `read` work in the session's environment."""

    answer: str
    messages: list[JsonDict]
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
        files = self.app.environments.files(self.task_id)
        if files.stat(path) is None:
            raise FileNotFoundError(path)
        return files.read(path, max_bytes=files.max_read_bytes).decode("utf-8", "replace")


class Ended(NamedTuple):
    """`is_failure`: another attempt may do better. `trajectory` is what is written of the session."""

    result: JsonDict
    trajectory: JsonDict | None = None
    is_failure: bool = False


class Parts(NamedTuple):
    """What all attempts of a worker share."""

    app: Handrail
    run: str
    models: Models
    reward: Reward
    without: Sequence[str] = WITHOUT
    reward_seconds: float = _REWARD_SECONDS
    artifacts: Artifacts | None = None


class Attempt:
    """`run` it once. `cancel` gives it up, from any thread: nothing of it is recorded any more."""

    def __init__(self, parts: Parts, journal: "Journal") -> None:
        self._parts, self.journal = parts, journal
        self.task = Task.from_json(journal.lease.body)
        self.session = f"batch-{parts.run}-{self.task.id}"
        self._agent: Agent | None = None
        self._folder = ""
        self.is_leased = True

    @property
    def is_cancelled(self) -> bool:
        return self.journal.is_closed.is_set()

    def cancel(self, reason: str) -> None:
        self.journal.is_closed.set()
        if self._agent is not None:
            self._agent.interrupt(reason)

    async def run(self) -> Ended:
        began, ended = time.monotonic(), Ended({"error": "cancelled"}, None, True)
        try:
            ended = await self._tried()
        except Exception as error:  # noqa: BLE001  whatever it was, the other tasks go on
            why = str(error) if isinstance(error, HandrailError) else f"{type(error).__name__}: {error}"
            ended = Ended({"error": why}, None, True)
        finally:
            await asyncio.to_thread(self._close)
        return ended._replace(result={**ended.result, "seconds": round(time.monotonic() - began, 3)})

    def drop_folder(self) -> None:
        """Remove the folder that was made for the session: nobody goes on in it."""
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)

    async def _tried(self) -> Ended:
        with contextlib.closing(SessionStore()) as store:
            agent = self._agent = await asyncio.to_thread(self._open, store)
            home = await asyncio.to_thread(self._put, self.task.files)
            if self.is_cancelled:
                return Ended({"error": "cancelled"}, None, True)
            ended = await agent.arun(self.task.prompt)
            scored = await self._scored(ended, [each.message for each in store.messages(self.session)])
            return scored if scored.is_failure else await asyncio.to_thread(self._kept, scored, home)

    def _open(self, store: SessionStore) -> Agent:
        parts, task = self._parts, self.task
        app, environment = parts.app, self._placed()
        models = [RecordedModel(model, self.journal) for model in parts.models(task.model)]
        cwd = str(environment.get("cwd") or os.getcwd())
        info = store.begin(self.session, platform="batch", model=models[0].name, cwd=cwd)
        enabled, disabled = app.chosen_toolsets()
        agent = Agent(
            app,
            models,
            store=store,
            session=info,
            toolsets=enabled if task.toolsets is None else list(task.toolsets),
            without=[*disabled, *parts.without],
            budgets=task.limits,
            platform="batch",
            cwd=cwd,
            memory=Memory(work_folder(parts.run) / ".none"),
            environment=environment,
            telemetry=Telemetry(content=app.config.telemetry.content),
            caller=Caller(journal=self.journal, on_question=self.journal.note_question),
        )
        if self._dies():
            self.journal.rebuilds = True
            self.drop_folder()
        if self._folder:
            Path(self._folder).mkdir(mode=0o700, parents=True, exist_ok=True)
        return agent

    def _placed(self) -> JsonDict:
        """Where its commands run. On this machine, without a folder of yours, that is one of its own, in a sandbox."""
        given, app = dict(self.task.environment), self._parts.app
        backend = str(given.get("backend") or app.config.terminal.backend).partition(":")[0]
        if "cwd" in given or not is_host(app.backends.get(backend)):
            return given
        self._folder = str(work_folder(self._parts.run) / self.task.id.replace(":", "%"))
        return {"sandbox": True, **given, "cwd": self._folder}

    def _dies(self) -> bool:
        """Whether all that commands can change goes with the attempt. A folder of yours, or another machine, stays."""
        environment = self._parts.app.environments.of(self.session)
        is_own = bool(self._folder) or not environment.reaches_host
        return environment.isolated and not environment.persistent and is_own

    def _put(self, given: Mapping[str, str]) -> str:
        """Returns the folder where the task begins."""
        files = self._parts.app.environments.files(self.session)
        for path, text in given.items():
            files.write(path, text.encode())
        return files.resolve(".") if self.task.keep else ""

    @property
    def _name(self) -> str:
        return f"{self._parts.run}/{self.task.id}.{self.journal.lease.attempt}"

    def _kept(self, ended: Ended, home: str) -> Ended:
        """With the URLs of what is too large for the ledger. Raises ToolFailed."""
        artifacts, files = self._parts.artifacts, self._parts.app.environments.files(self.session)
        if artifacts is None or ended.trajectory is None:
            return ended
        names = {path: f"{self._name}/{path}" for path in self.task.keep}
        kept = {path: artifacts.copy(files, os.path.join(home, path), name) for path, name in names.items()}
        url = artifacts.write_json(f"{self._name}.json", ended.trajectory)
        return Ended({**ended.result, **({"artifacts": kept} if kept else {})}, {"trajectory": url})

    def drop_artifacts(self) -> None:
        """Remove what was kept: the attempt's result was refused."""
        if self._parts.artifacts is not None:
            self._parts.artifacts.remove(self._name)
            self._parts.artifacts.remove(f"{self._name}.json")

    async def _scored(self, ended: TurnEnded, messages: list[JsonDict]) -> Ended:
        used = ended.usage
        tokens = used.input_tokens + used.output_tokens
        result: JsonDict = {"ended_by": ended.end.value, "answer": ended.answer[:_MAX_ANSWER], "session": self.session}
        result |= {"model_calls": ended.model_calls, "tokens": tokens, "cost": used.cost}
        trajectory = {"messages": messages}
        if self.is_cancelled:
            return Ended(result, None, True)
        if ended.end is End.FAILED:
            return Ended({**result, "error": ended.reason}, None, True)
        if not self.task.reward:
            return Ended(result, trajectory)
        outcome = Outcome(ended.answer, messages, ended.end.value, ended.model_calls, self._parts.app, self.session)
        seconds = self._parts.reward_seconds
        try:
            work = asyncio.wrap_future(pool.submit(self._parts.reward, self.task, outcome))
            result["reward"] = await asyncio.wait_for(work, seconds)
        except TimeoutError:
            result["error"] = f"reward timed out after {seconds:g} s"
        except Exception as error:  # noqa: BLE001  a reward may fail in any way, and the others go on
            is_told = isinstance(error, ToolFailed)
            result["error"] = str(error) if is_told else f"reward failed: {type(error).__name__}: {error}"
        return Ended(result, trajectory)

    def _close(self) -> None:
        app = self._parts.app
        for process in app.processes.list(self.session):
            with contextlib.suppress(HandrailError):
                process.kill()
        if self._agent is not None:
            self._agent.close()
        if self.journal.rebuilds:
            self.drop_folder()


def command_reward(task: Task, outcome: Outcome) -> float:
    """Run the task's command where the agent worked: the number in its last line, else 1 or 0 by its exit code."""
    code, output = outcome.run(str(task.reward), timeout=_REWARD_SECONDS)
    try:
        return number_of(float(output.strip().splitlines()[-1])) if code == 0 else 0.0
    except (ValueError, IndexError):
        return 1.0


def number_of(value: Any) -> float:
    """A reward as a number. Raises ToolFailed for anything else."""
    if not isinstance(value, int | float) or not math.isfinite(value):
        raise ToolFailed(f"reward returned {str(value)[:80]!r}, which is not a number")
    return float(value)


class Journal:
    """`rebuilds`: the session's environment died with the earlier attempt, and is a new one."""

    def __init__(self, lease: Lease, call: Call) -> None:
        self.lease, self._call = lease, call
        self.rebuilds = False
        self.is_closed = threading.Event()  # the attempt is given up: nothing more is recorded
        self.asked: set[str] = set()  # calls whose questions a person answered
        self._seen: Counter[str] = Counter()

    def note_question(self, request: ApprovalRequest) -> None:
        self.asked.add(request.tool_call_id)

    def open(self, tool: str, arguments: JsonDict, *, call_id: str, toolset: str, read_only: bool) -> "Entry":
        same = _digest([tool, arguments])
        self._seen[same] += 1
        key = f"{same}.{self._seen[same]}"
        row = self.lease.journal.get(key)
        runs_again = row is not None and self._again(row, toolset, read_only)
        return Entry(self, (key, tool, call_id), row, runs_again)

    def _again(self, row: JournalRow, toolset: str, read_only: bool) -> bool:
        """Whether it runs although an earlier attempt has begun or done it."""
        if toolset == "delegation":  # the calls of a child agent are in this journal too
            return self.rebuilds or not row.result
        is_gone = toolset == "todo" or (self.rebuilds and toolset in _IN_ENVIRONMENT and not row.asked)
        return is_gone or (read_only and not row.result)

    def record(self, method: str, *values: Any) -> Any:
        """Send something to the ledger; wait while that is full. Returns its answer. Raises Fenced."""
        while True:
            try:
                return self._call(method, self.lease.task, self.lease.attempt, *values)
            except StoreError:
                if self.is_closed.wait(_RETRY_SECONDS):
                    raise


class Entry:
    """One call of this attempt, with its row of an earlier one."""

    def __init__(self, journal: Journal, call: tuple[str, str, str], row: JournalRow | None, runs_again: bool) -> None:
        self._journal, self._call = journal, call
        self._had: CallOutcome | None = json.loads(row.result) if row and row.result else None
        self.recorded = None if runs_again else self._had
        if row is not None and not runs_again and self._had is None:
            self.recorded = error_outcome(UnknownOutcome(_UNKNOWN.format(tool=call[1])))

    def begin(self) -> None:
        key, tool, call_id = self._call
        self._journal.record("begin", key, tool, call_id in self._journal.asked)

    def end(self, outcome: CallOutcome) -> CallOutcome:
        if self._had is not None:
            return self._had
        if not self._journal.is_closed.is_set():
            self._journal.record("end", self._call[0], json.dumps(outcome))
        return outcome


class RecordedModel:
    """A model whose answers are kept until the task is done: another attempt asks nothing that was answered."""

    def __init__(self, model: StreamingModel, journal: Journal) -> None:
        self._model, self._journal = model, journal

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    async def stream(self, messages: Messages, tools: Messages) -> AsyncIterator[Piece]:
        key = _digest([self._model.name, [each for each in messages if each.get("role") != "system"]])
        if (known := self._journal.lease.replies.get(key)) is not None:
            for piece in _pieces(json.loads(known)):
                yield piece
            return
        answer = PartialAnswer()
        async for piece in self._model.stream(messages, tools):
            answer.add(piece)
            if isinstance(piece, Finished):
                reply = {"text": "".join(answer.text), "calls": list(answer.calls.values()), "end": [*piece]}
                await asyncio.to_thread(self._journal.record, "keep_reply", key, json.dumps(reply))
            yield piece


def _pieces(reply: JsonDict) -> list[Piece]:
    usage, cut_off = reply["end"]
    calls = [CallPiece(place, *call) for place, call in enumerate(reply["calls"])]
    return [*([TextPiece(reply["text"])] if reply["text"] else []), *calls, Finished(Usage(*usage), cut_off)]


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=repr).encode()).hexdigest()[:24]
