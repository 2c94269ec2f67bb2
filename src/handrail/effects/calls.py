"""The calls of a state folder: list them, show what they changed, take them back and bring them back."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..environments.shell_host import call_effects, journal_recovery
from ..environments.task_settings import EnvironmentSettings
from ..errors import HandrailError, ToolError, ToolFailed
from ..store.call_records import STORE_NAME, CallRecord, CallStore
from .begun_calls import BEGUN_FOLDER, left_behind
from .open_call import FULL, Ended
from .receipts import Receipts
from .recorder import Recorder

if TYPE_CHECKING:
    from ..environments.base import Environment
    from ..environments.tasks import TaskEnvironments
    from ..settings.schema import Config
    from ..types import JsonDict

log = logging.getLogger(__name__)

AUDIT_FOLDER = "audit"
_MARGIN_SECONDS = 60.0
LOCAL = "local"
UNDO = "undo"
NOTHING = hashlib.sha256().hexdigest()  # the digest of a call without entries


class Calls:
    """`folder` is the state folder. `rules` gives the settings in force. Nothing is opened before it is used."""

    def __init__(self, folder: Path, environments: TaskEnvironments, rules: Callable[[], Config]) -> None:
        settings = environments.config.effects
        self.keep_days, self.keep_bytes = settings.keep_days, settings.keep_bytes
        self._environments, self._rules, self._begun_folder = environments, rules, folder / BEGUN_FOLDER
        self.store = CallStore(folder / STORE_NAME)
        self.receipts = Receipts(self.store.database, folder / AUDIT_FOLDER, settings.witness)
        self.recorder = Recorder(folder, self._keep, lambda task: plain(environments.settings(task)))

        self.recorder.is_enabled = settings.enabled
        self.recorder.is_durable, self.recorder.max_copy_bytes = settings.durable == "power", settings.max_copy

    @property
    def records(self) -> Any:
        """The records, with those of all calls that have ended."""
        self.recorder.flush()
        return self.store.records

    def close(self) -> None:
        self.recorder.close()
        try:
            self.receipts.close()
        except (HandrailError, OSError) as error:
            log.warning("the receipts of the last calls are not signed yet: %s", error)
        self.store.close()

    def list(self, count: int = 50, *, session: str | None = None, folder: str = "") -> list[CallRecord]:
        """The newest first. Those of a session, and those made in a folder or below it, if they are given."""
        found = self.records.latest(count, session=session, folder=folder)
        return [self._refreshed(record) if record.ended is None else record for record in found]

    def last(self, count: int, *, session: str | None = None, folder: str = "") -> list[CallRecord]:
        """The last calls that changed something and hold. An undo is none of them."""
        found = self.list(10_000, session=session, folder=folder)
        return [one for one in found if one.is_changing and not one.undone_by and one.tool != UNDO][:count]

    def describe(self, number: int, *, diff: bool = False) -> JsonDict:
        """What is different after the call: see `call_effects.describe`. Raises CallNotFound."""
        record = self._refreshed(self.records.get(number))
        return {**self._ask(record, "describe", diff=diff), "record": as_json(record, self.keep_days)}

    def undo(
        self,
        number: int,
        *,
        only: str = "",
        force: bool = False,
        dry_run: bool = False,
        session: str | None = None,
        task: str | None = None,
    ) -> JsonDict:
        """Take a call back: see `call_effects.undo`. The undo is a call too, made in this session. Raises CallNotFound."""
        record = self.records.get(number)
        mine = 0 if dry_run else self.recorder.numbers.next()
        begun = time.time()
        answer = self._ask(record, "undo", number=mine, only=only, force=force, dry_run=dry_run)
        if answer["status"] == "undone":
            head = f"call {number}" + (f" at {only}" if only else "")
            undone = record._replace(number=mine, session=session, task=task, tool=UNDO, head=head, begun=begun)
            undone = undone._replace(ended=time.time(), approval={}, undoes=number, undone_by=0, outcome="")
            self._keep(Ended(undone, None))
            if not only:
                self._mark_undone(record, mine)
        return {**answer, "call": number}

    def redo(self, number: int, *, session: str | None = None, dry_run: bool = False, force: bool = False) -> JsonDict:
        """Bring back what an undo took back. Raises CallNotFound."""
        by = self.describe(number)["undone_by"]
        if not by:
            return {"call": number, "status": "refused", "reason": f"call {number} is not undone", "conflicts": []}
        return {**self.undo(by, session=session, dry_run=dry_run, force=force), "call": number}

    def recover(self) -> None:
        """After a crash: finish the calls that were interrupted, as `effects.on_crash` says, and write what became of them."""
        outcomes = journal_recovery.recover(self.recorder.journal_folder, self._environments.config.effects.on_crash)
        found = {one["call"]: one for one in outcomes}
        for path, begun in left_behind(self._begun_folder):
            settled = [self._settle(about, found.get(about["number"])) for about in begun]
            if all(settled):
                path.unlink(missing_ok=True)

    def _settle(self, about: JsonDict, found: JsonDict | None) -> bool:
        """Write the record of a call whose runtime is gone. False if its shell still has to end."""
        record = CallRecord(**about)
        if self.store.records.find(record.number) is not None:
            return True
        if "coverage" in about:  # it had ended, and only its record was missing
            self._keep(Ended(record, None))
            return True
        outcome, told = "interrupted before it changed anything", {}
        if record.environment != LOCAL:
            outcome = "interrupted, and what it has changed is not known (unknown_outcome): check before you repeat it"
        else:
            told = self._ask(record, "describe")
            if found is not None:
                outcome = f"interrupted after {found['changes']} of its changes; {found['outcome']}"
                outcome += f", but not {', '.join(found['failed'])}" if found["failed"] else ""
            elif told.get("rolled_back"):
                outcome = "interrupted; rolled back"
            elif told.get("digest") != NOTHING:
                if told.get("ended") is None:
                    return False
                outcome = "interrupted after all of its changes; kept"
            if told.get("hosts"):
                outcome += f"; what it did at {', '.join(told['hosts'])} is not known (unknown_outcome)"
        counts, digest = told.get("counts", {}), told.get("digest", "")
        self._put(record._replace(outcome=outcome, is_told=False, counts=counts, digest=digest, ended=time.time()))
        return True

    def interrupted(self, session: str) -> list[str]:
        """What a session has to be told of its calls that were interrupted, each once."""
        self.recover()
        return [
            f"Call {one.number} ({one.tool}: {one.head}) was {one.outcome}." for one in self.records.untold(session)
        ]

    def prune(
        self, *, keep_days: float | None = None, keep_bytes: int | None = None, dry_run: bool = False
    ) -> JsonDict:
        """Forget what is too old, or too much."""
        days = self.keep_days if keep_days is None else keep_days
        most = self.keep_bytes if keep_bytes is None else keep_bytes
        return call_effects.prune(self.recorder.journal_folder, days, most, dry_run=dry_run)

    def _mark_undone(self, record: CallRecord, by: int) -> None:
        self.store.records.set_undone(record.number, by)
        if record.undoes:  # the undo of an undo: what that one took back holds again
            self.store.records.set_undone(record.undoes, 0)

    def _keep(self, ended: Ended) -> None:
        """Write the record of a call, with what it changed."""
        record = ended.record
        try:
            told = self._told(record, ended.environment)
        except (HandrailError, OSError) as error:
            told = {"damaged": str(error)}
        if "damaged" in told:
            record = record._replace(
                coverage="none" if record.coverage == FULL else record.coverage, reason=told["damaged"]
            )
        counts = told.get("counts", {})
        if record.ended is not None and not any(counts.values()) and record.coverage == FULL and not told.get("hosts"):
            return
        hosts, digest = len(told.get("hosts", ())), told.get("digest", "")
        self._put(record._replace(counts=counts, hosts=hosts, digest=digest))

    def _told(self, record: CallRecord, environment: Environment | None) -> JsonDict:
        """What the call has changed. All of the journal is read only if the clock was set back meanwhile."""
        if record.environment == LOCAL:
            told = self._ask(record, "describe", since=record.begun - _MARGIN_SECONDS)
            if told.get("digest") != NOTHING or (record.ended or time.time()) >= record.begun:
                return told
        return self._ask(record, "describe", environment=environment)

    def _put(self, record: CallRecord) -> None:
        self.store.records.put(record)
        config = self._rules()
        policy = repr((config.approvals, config.command_allowlist, config.protect, config.terminal.protect))
        self.receipts.add(record, hashlib.sha256(policy.encode()).hexdigest())
        if call_effects.is_prune_due(self.recorder.journal_folder):
            self.prune()

    def _refreshed(self, record: CallRecord) -> CallRecord:
        """Of a call that goes on in the background, as it is now."""
        if record.ended is not None:
            return record
        try:
            told = self._ask(record, "describe")
        except (ToolError, OSError):
            return record
        record = record._replace(
            counts=told.get("counts", {}), hosts=len(told.get("hosts", ())), ended=told.get("ended")
        )
        if record.ended is not None:
            self._put(record._replace(digest=told.get("digest", "")))
        return record

    def place_of(self, task: str | None) -> tuple[str, Environment | None]:
        """Where a task's shell is, and its environment, if its files are not on this machine."""
        environments = self._environments
        return environments.cwd(task), None if environments.has_host_paths(task) else environments.of(task)

    def _ask(
        self, record: CallRecord, operation: str, *, environment: Environment | None = None, **arguments: Any
    ) -> JsonDict:
        """Ask the journal that the call is in: of this machine, or beside the shell elsewhere."""
        if record.environment == LOCAL:
            answer: JsonDict = getattr(call_effects, operation)(
                self.recorder.journal_folder, record.number, **arguments
            )
            return answer
        with self._opened(record, environment) as opened:
            return opened.call_effects(operation, call=record.number, **arguments)

    @contextlib.contextmanager
    def _opened(self, record: CallRecord, environment: Environment | None) -> Iterator[Any]:
        if environment is None:
            of_task = self._environments.peek(record.task)
            if of_task is not None and plain(self._environments.settings(record.task)) == record.settings:
                environment = of_task
        if environment is not None:
            yield environment
            return
        try:
            settings = EnvironmentSettings(**record.settings)
        except TypeError:
            raise ToolFailed(f"call {record.number} was made by another version of Handrail; use that one") from None
        made = self._environments.open(settings)
        try:
            yield made
        finally:
            made.close()


def plain(settings: EnvironmentSettings) -> dict[str, Any]:
    """As they are stored."""
    stored: dict[str, Any] = json.loads(json.dumps(settings._asdict()))
    return stored


def as_json(record: CallRecord, keep_days: float) -> JsonDict:
    """For programs: without what is only needed to reach the environment again."""
    shown = record._asdict()
    del shown["settings"], shown["is_told"]
    until = None if record.ended is None else record.ended + keep_days * 86_400
    return {**shown, "can_be_undone_until": until if record.is_changing and not record.undone_by else None}


def folder_here() -> str:
    """The folder that you are in, as records name it."""
    return os.path.realpath(os.getcwd())
