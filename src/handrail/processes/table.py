"""The table of background processes: all of one user's, of every task, of this runtime and of earlier ones."""

import builtins
import contextlib
import json
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ..base.own_process import has_exited, runtime_id
from ..base.suggest import did_you_mean
from ..environments.backend_table import DEFAULT_TASK, EnvironmentSettings
from ..environments.base import BackgroundProcess, Environment
from ..environments.errors import NoSuchProcess
from ..environments.tasks import TaskEnvironments
from ..errors import ToolError, ToolFailed
from ..settings.sections import ProcessesConfig
from ..store.processes import ProcessRecord, ProcessRecords
from .tracked import State, Status, TrackedProcess, last_lines
from .watched_output import LineMatcher, Notice, NoticeKind, OutputWatch, PollResult, Watcher

log = logging.getLogger(__name__)
DEFAULT_SIZE = (24, 80)  # rows and columns
_COMMAND_KEPT = 4000
_NOTICE_BYTES, _NOTICE_LINES = 2000, 20
_MAX_NOTICES, _MAX_NAMED = 200, 10


class TooManyProcesses(ToolError):
    error_type = "too_many_processes"


class Wanted(NamedTuple):
    """How to start a process besides its command, and which notices are wanted. `size` is that of its terminal, in rows and
    columns; None: it gets no terminal."""

    cwd: str | None = None
    env: Mapping[str, str] | None = None
    size: tuple[int, int] | None = None
    notify_on_complete: bool = False
    watch_patterns: Sequence[str] = ()
    call: int = 0  # what it changes belongs to this call


class ProcessTable:
    """Safe under threads, and with several runtimes at the same records."""

    def __init__(
        self, records: ProcessRecords, environments: TaskEnvironments, limits: ProcessesConfig | None = None
    ) -> None:
        self._records, self._environments = records, environments
        self.limits = limits or environments.config.processes
        self._opened: dict[str, Environment] = {}
        self._known: dict[str, TrackedProcess] = {}
        self._watches: dict[str, OutputWatch] = {}
        self._notices: deque[Notice] = deque(maxlen=_MAX_NOTICES)
        self._listeners: list[Callable[[Notice], object]] = []
        self._lock = threading.RLock()
        self._watcher = Watcher(self._poll)

    def start(self, command: str, *, task_id: str | None, session_id: str | None, wanted: Wanted) -> TrackedProcess:
        """Start one in the task's environment. Raises TooManyProcesses before anything happens. It survives this runtime
        wherever it can: a server that ends with the program that started it is a surprise."""
        if wanted.watch_patterns:
            LineMatcher(wanted.watch_patterns)  # raises InvalidArguments for what cannot be watched for
        self._check_room(task_id or DEFAULT_TASK)
        with self._environments.use(task_id) as environment:
            process: BackgroundProcess
            how: dict[str, Any] = {"cwd": wanted.cwd, "env": wanted.env, "survives": environment.persistent}
            how |= {"call": wanted.call} if wanted.call else {}
            if wanted.size is None:
                process = environment.background(command, **how)
            else:
                process = environment.open_pty(command, rows=wanted.size[0], columns=wanted.size[1], **how)
            settings = self._environments.settings(task_id)
            added = self.add(process, task_id=task_id, session_id=session_id, settings=settings, wanted=wanted)
            return self.get(added)

    def add(
        self,
        process: BackgroundProcess,
        *,
        task_id: str | None,
        session_id: str | None,
        settings: EnvironmentSettings,
        wanted: Wanted | None = None,
    ) -> str:
        """Add a process that already runs. Returns its id in the table."""
        wanted = wanted or Wanted()
        rows, columns = wanted.size or DEFAULT_SIZE
        watch = OutputWatch(wanted.watch_patterns) if wanted.watch_patterns else None
        record = ProcessRecord(
            id=self._records.new_id(),
            process_id=process.id,
            pid=process.pid,
            command=process.command[:_COMMAND_KEPT],
            started_at=process.started_at,
            task_id=task_id or DEFAULT_TASK,
            session_id=session_id,
            environment=settings.backend,
            settings=settings.as_json(),
            survives=process.survives,
            has_pty=process.has_pty,
            rows=rows,
            columns=columns,
            watch_patterns=tuple(wanted.watch_patterns),
            watched_to=0,
            owner=runtime_id(),
        )
        self._records.put(record)
        if wanted.notify_on_complete:
            self._records.owe_notice(record.id)
        tracked = self._track(record, process)
        if watch is not None:
            self._watches[record.id] = watch
        if wanted.notify_on_complete or watch is not None:
            self._watcher.watch(tracked)
        for expired in self.expired():
            if expired.record.settings == record.settings:  # its environment is the one that is open anyway
                with contextlib.suppress(ToolError, OSError):
                    self.forget(expired.id)
        return record.id

    def _check_room(self, task_id: str) -> None:
        """Usually the records are enough. Only if there are too many is each polled."""
        running = [record for record in self._records.all() if record.ended_at is None]
        for most, where, among in (
            (self.limits.max_running_per_task, "in this task", [one for one in running if one.task_id == task_id]),
            (self.limits.max_running, "in all tasks together", running),
        ):
            if len(among) < most:
                continue
            alive = [one for one in map(self._track, among) if one.status().state is State.RUNNING]
            if len(alive) >= most:
                names = ", ".join(f"{one.id} ({one.record.command[:40]})" for one in alive[:3])
                raise TooManyProcesses(
                    f"{len(alive)} background processes run {where}, and no more are allowed; "
                    f"kill one that you do not need. The oldest: {names}"
                )

    def get(self, id: str) -> TrackedProcess:  # noqa: A002  the process's id
        """Raises NoSuchProcess."""
        known = self._known.get(id)
        if known is not None and known.record.owner == runtime_id():
            return known
        record = self._records.get(id)
        if record is None:
            latest = [record.id for record in self._records.all()][-_MAX_NAMED:]
            raise NoSuchProcess(f"there is no background process {id!r}; {did_you_mean(id, latest)}")
        return self._track(record)

    def list(self, task_id: str | None = None) -> builtins.list[TrackedProcess]:
        """Those of one task, or all; the oldest first, including ended ones that are kept."""
        return [self._track(record) for record in self._records.all() if task_id in (None, record.task_id)]

    def _track(self, record: ProcessRecord, process: BackgroundProcess | None = None) -> TrackedProcess:
        with self._lock:
            known = self._known.get(record.id)
            if known is None:
                known = self._known[record.id] = TrackedProcess(
                    record, self._find, self._save, lambda text: self._environments.masker(text), self._change, process
                )
            elif known.record.ended_at is None:
                known.record = record  # another runtime may have updated it
            return known

    def _change(self, record: ProcessRecord, text: str) -> str:
        plugins = self._environments.change_output
        if plugins is None or not plugins.is_wanted():
            return text
        return plugins(record.command, text, record.exit_code, record.task_id, record.session_id)

    def _save(self, record: ProcessRecord) -> None:
        with self._lock:  # one that was dropped meanwhile must not come back
            if record.id in self._known:
                self._records.update(record)

    def _find(self, record: ProcessRecord) -> BackgroundProcess | None:
        return next((one for one in self.environment(record).processes() if one.id == record.process_id), None)

    def environment(self, record: ProcessRecord) -> Environment:
        """The one that it was started in: the task's own if it has the same settings, else another one with those."""
        try:
            secrets = tuple(record.settings["allowed_secrets"])
            settings = EnvironmentSettings(**{**record.settings, "allowed_secrets": secrets})
        except (TypeError, KeyError):
            why = f"{record.id} was started by another version of Handrail; manage it with that version"
            raise ToolFailed(why) from None
        of_task = self._environments.peek(record.task_id)
        if of_task is not None and self._environments.settings(record.task_id).as_json() == record.settings:
            return of_task
        with self._lock:
            key = json.dumps(record.settings, sort_keys=True)
            if key not in self._opened:
                self._opened[key] = self._environments.open(settings)
            return self._opened[key]

    def forget(self, id: str) -> None:  # noqa: A002  the process's id
        """Remove it from the table, with its log. Kills it first if it runs."""
        tracked = self.get(id)
        with contextlib.suppress(NoSuchProcess):
            tracked.use(lambda process: process.forget())
        self.drop(id)

    def drop(self, id: str) -> None:  # noqa: A002  the process's id
        """Remove it from the table only."""
        self._watcher.forget(id)
        with self._lock:
            self._known.pop(id, None)
            self._watches.pop(id, None)
            self._records.remove(id)

    def expired(self) -> builtins.list[TrackedProcess]:
        """Those that ended too long ago, or before too many others, to be kept."""
        records = [record for record in self._records.all() if record.ended_at is not None]
        records.sort(key=lambda record: record.ended_at or 0.0, reverse=True)
        latest, most = time.time() - self.limits.keep_finished_hours * 3600, self.limits.max_finished
        young = [record for record in records[:most] if (record.ended_at or 0.0) >= latest]
        return [self._track(record) for record in records[len(young) :]]

    def close(self) -> None:
        """Stop watching. What was started to survive does; the rest ends with its environment."""
        self._watcher.close()
        with self._lock:
            opened, self._opened = self._opened, {}
        for environment in opened.values():
            with contextlib.suppress(ToolError, OSError):  # it was only read from
                environment.close()

    def drain_notices(self, task_id: str | None = None, *, take_over: bool = True) -> builtins.list[Notice]:
        """The notices since the last call, each returned once: of this runtime's processes, or of one task's. With a task, also
        those of processes whose runtime has exited, which this one takes over from now on. Finding those reads files;
        `take_over=False` does not."""
        if task_id is not None and take_over:
            self._take_over(task_id)
        with self._lock:
            waiting = [one for one in self._notices if task_id in (None, one.task_id)]
            for notice in waiting:
                self._notices.remove(notice)
        given = []
        for notice in waiting:
            if notice.kind is NoticeKind.ENDED:
                if not self._records.claim_notice(notice.id):
                    continue  # it was already delivered
            elif notice.id in self._known:
                self._known[notice.id].change(watched_to=notice.watched_to)
            given.append(notice)
        return given

    def on_notice(self, listener: Callable[[Notice], object]) -> Callable[[], None]:
        """Pass each notice to `listener` immediately, in another thread; it is drained all the same. Returns an undo."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def seen(self, tracked: TrackedProcess, status: Status) -> None:
        """Its status was read directly: drop the notice of its end, and resume a paused watch."""
        if status.state in (State.EXITED, State.LOST):
            self._records.claim_notice(tracked.id)
            return
        watch = self._watches.get(tracked.id)
        if watch is not None and watch.is_paused and watch.can_resume:
            watch.resume(tracked)
            self._watcher.watch(tracked)

    def _take_over(self, task_id: str) -> None:
        mine = runtime_id()
        for record in self._records.all():
            if record.task_id != task_id or record.owner == mine or not has_exited(record.owner):
                continue
            if not (record.watch_patterns or self._records.owes_notice(record.id)):
                continue
            tracked = self._track(record)
            tracked.status()  # records the end of one that ended with its runtime
            tracked.change(owner=mine)
            if record.watch_patterns and record.id not in self._watches:
                self._watches[record.id] = OutputWatch(record.watch_patterns, record.watched_to)
            if self._poll(tracked) is not PollResult.OVER:
                self._watcher.watch(tracked)

    def _poll(self, tracked: TrackedProcess) -> PollResult:
        status = tracked.status()
        if status.state is State.UNREACHABLE:
            return PollResult.QUIET
        watch = self._watches.get(tracked.id)
        notice = None
        if watch is not None and not watch.is_paused:
            with contextlib.suppress(ToolError, OSError):
                notice = watch.poll(tracked)
        if notice is not None:
            self._notify(notice)
            if notice.kind is NoticeKind.PAUSED:
                with self._lock:
                    if tracked.id in self._known:
                        self._records.owe_notice(tracked.id)
        if status.state is State.RUNNING:
            return PollResult.NEWS if notice is not None else PollResult.QUIET
        if self._records.owes_notice(tracked.id):
            text = ""
            with contextlib.suppress(ToolError, OSError):
                text = last_lines(tracked, _NOTICE_BYTES)["output"]
            shown, code = text.splitlines()[-_NOTICE_LINES:], status.exit_code
            self._notify(Notice.of(tracked.record, NoticeKind.ENDED, shown, exit_code=code, what=str(status)))
        return PollResult.OVER

    def _notify(self, notice: Notice) -> None:
        with self._lock:
            self._notices.append(notice)
        for listener in tuple(self._listeners):
            try:
                listener(notice)
            except Exception as error:  # noqa: BLE001  a listener's bug is not the process's
                log.warning("a listener for processes failed: %s: %s", type(error).__name__, error)
