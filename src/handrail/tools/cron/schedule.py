"""What a schedule means: a cron expression, an interval, or one time, each in its time zone. When clocks change, a cron job at
a fixed hour that is skipped runs right after the gap, and one in an hour that comes twice runs once; a job of every hour runs
every hour that passes. Intervals count the time that passes and know no clocks. One scheduler runs at a time among all
processes of the user."""

import contextlib
import math
import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime, tzinfo
from typing import NamedTuple

from ...base.own_process import has_exited, pid_of, runtime_id
from ...config.paths import state_dir
from ...errors import InvalidArguments, SchedulerRuns

EXAMPLES = "'0 9 * * MON-FRI', '30m', 'in 2h', '2026-12-24T18:00'"
MIN_SECONDS = 60
_MAX_SECONDS = 366 * 86_400
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_UNIT = r"(?:s|m|h|d|w)(?:ec|ecs|econds?|in|ins|inutes?|rs?|ours?|ays?|eeks?)?"
_AMOUNT = rf"\d{{1,6}}\s*{_UNIT}(?:\s*\d{{1,6}}\s*{_UNIT})*"
_NICKNAMES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_LOCK, _WHO = "scheduler.lock", "scheduler.who"


class Schedule(NamedTuple):
    """One of three: `expression`, `seconds`, `at`. `text` says it so that it is read again as the same."""

    text: str
    zone: str
    expression: str = ""
    seconds: float = 0
    at: float | None = None

    @property
    def once(self) -> bool:
        return self.at is not None

    def next_after(self, after: float, *, since: float) -> float | None:
        """The first time after `after`; intervals are counted from `since`. None: never again."""
        if self.at is not None:
            return self.at if self.at > after else None
        if self.seconds:
            passed = max(0, math.floor((after - since) / self.seconds))
            return since + (passed + 1) * self.seconds
        from cronsim import CronSim

        found = next(CronSim(self.expression, datetime.fromtimestamp(after, zone_of(self.zone))), None)
        return None if found is None else found.timestamp()


def read_schedule(text: str, zone: str, *, now: float) -> Schedule:
    """Raises InvalidArguments for an invalid schedule; `in 2h` counts from `now`."""
    wanted, place = " ".join(text.split()), zone_of(zone)
    if re.fullmatch(rf"(?:every )?{_AMOUNT}|every {_UNIT}", wanted, re.IGNORECASE):
        seconds = _seconds(wanted)
        if not MIN_SECONDS <= seconds <= _MAX_SECONDS:
            raise InvalidArguments(f"{text!r}: an interval is from one minute to one year")
        return Schedule(wanted, zone, seconds=seconds)
    if re.fullmatch(rf"in {_AMOUNT}", wanted, re.IGNORECASE):
        return _once(math.ceil(now + min(_seconds(wanted), _MAX_SECONDS)), zone, place)
    return _at(wanted, zone, place) if re.match(r"\d{4}-\d\d-\d\d", wanted) else _cron(wanted, zone, now)


def first_run(schedule: Schedule, now: float) -> float:
    """The first run. Raises InvalidArguments for a schedule without one."""
    if (found := schedule.next_after(now, since=now)) is None:
        raise InvalidArguments(
            f"{schedule.text} is in the past; give a time to come"
            if schedule.once
            else f"{schedule.text!r} never happens; check its day and month"
        )
    return found


def zone_of(name: str) -> tzinfo:
    from zoneinfo import ZoneInfo

    if name.upper() == "UTC":
        return UTC  # known where no list of zones is installed
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise InvalidArguments(f"unknown time zone {name!r}; one looks like Europe/Berlin or UTC") from None


def local_zone() -> str:
    """The name of this machine's time zone; UTC when it is unknown."""
    named = os.environ.get("TZ", "").lstrip(":")
    linked = os.path.realpath("/etc/localtime").partition("zoneinfo/")[2]
    for name in filter(None, (named, linked)):
        with contextlib.suppress(InvalidArguments):
            zone_of(name)
            return name
    return "UTC"


def shown(at: float | None, zone: str) -> str:
    return "" if at is None else datetime.fromtimestamp(at, zone_of(zone)).isoformat(timespec="seconds")


def _seconds(text: str) -> int:
    """The sum of amounts with units. A unit alone counts once."""
    found = re.findall(r"(\d+)\s*([smhdw])", text.lower()) or [("1", text.split()[-1][0].lower())]
    return sum(int(amount) * _UNITS[unit] for amount, unit in found)


def _at(text: str, zone: str, place: tzinfo) -> Schedule:
    """A time of the zone's clocks, or with an offset of its own. One that the clocks skip is moved by what they skip."""
    try:
        found = datetime.fromisoformat(text)
        return _once((found if found.tzinfo else found.replace(tzinfo=place)).timestamp(), zone, place)
    except (ValueError, OverflowError):
        raise InvalidArguments(f"{text!r} is not a time; one looks like 2026-12-24T18:00") from None


def _once(at: float, zone: str, place: tzinfo) -> Schedule:
    return Schedule(datetime.fromtimestamp(at, place).isoformat(timespec="seconds"), zone, at=at)


def _cron(text: str, zone: str, now: float) -> Schedule:
    from cronsim import CronSim, CronSimError

    expression = _NICKNAMES.get(text.lower(), text)
    if (fields := len(expression.split())) != 5:
        counted = f"; it has {fields} fields, not 5" if "*" in text else ""
        raise InvalidArguments(f"{text[:100]!r} is not a schedule{counted}. Schedules look like {EXAMPLES}")
    try:
        CronSim(expression.upper(), datetime.fromtimestamp(now, zone_of(zone)))
    except CronSimError as error:
        why = str(error)[:1].lower() + str(error)[1:]
        raise InvalidArguments(f"{text[:100]!r} is not a schedule: {why}. Schedules look like {EXAMPLES}") from None
    return Schedule(text, zone, expression=expression.upper())


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
    try:
        who = (state_dir() / _WHO).read_text()
        return None if has_exited(who) else pid_of(who)
    except (OSError, ValueError, IndexError):
        return None
