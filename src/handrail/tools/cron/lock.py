"""One scheduler at a time among all processes of the user."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from ...base.runtime_id import has_exited, pid_of, runtime_id
from ...config import state_dir
from ...errors import SchedulerRuns

_LOCK, _WHO = "scheduler.lock", "scheduler.who"


@contextlib.contextmanager
def as_scheduler() -> Iterator[None]:
    """Hold the scheduler lock, which the system releases when this process ends. Raises SchedulerRuns."""
    import filelock

    folder = state_dir()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = filelock.FileLock(folder / _LOCK)
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        raise SchedulerRuns(f"a scheduler runs already (process {scheduler_pid() or 'unknown'})") from None
    try:
        (folder / _WHO).write_text(runtime_id())
        yield
    finally:
        (folder / _WHO).unlink(missing_ok=True)
        lock.release()


def scheduler_pid() -> int | None:
    """The process id of the running scheduler, if there is one."""
    try:
        who = (state_dir() / _WHO).read_text()
        return None if has_exited(who) else pid_of(who)
    except (OSError, ValueError, IndexError):
        return None
