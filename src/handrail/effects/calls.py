"""The calls of a state folder: list them, show what they changed, take them back and bring them back."""

import contextlib
import hashlib
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

from ..environments.backend_table import EnvironmentSettings
from ..environments.base import Environment
from ..environments.protection import JOBS_FOLDER
from ..environments.shell_host import call_effects, jobs, journal_undo
from ..environments.shell_host.journal_log import Journal
from ..environments.tasks import TaskEnvironments
from ..errors import HandrailError, ToolFailed
from ..settings.schema import Config
from ..store.call_records import STORE_NAME, CallRecord, CallRecords
from ..types import JsonDict
from . import trial
from .open_call import FULL, Ended
from .receipts import Receipts
from .receipts import digest as digest_of
from .recorder import BEGUN_FOLDER, Recorder, left_behind

log = logging.getLogger(__name__)
LOCAL, UNDO = "local", "undo"
_NOT_KEPT = "its changes are not kept any more"
_GONE = f"{_NOT_KEPT}, or somebody has removed them from the journal"
_AUDIT_FOLDER = "audit"
_MARGIN_SECONDS = 60.0
_NOTHING = hashlib.sha256().hexdigest()  # the digest of a call without entries


class Calls:
    """`folder` is the state folder. `rules` gives the settings in force. Nothing is opened before it is used."""

    def __init__(self, folder: Path, environments: TaskEnvironments, rules: Callable[[], Config]) -> None:
        settings = environments.config.effects
        self.keep_days, self.keep_bytes, self._on_crash = settings.keep_days, settings.keep_bytes, settings.on_crash
        self.tries_isolated = settings.tries == "isolated"
        self._environments, self._rules, self._begun_folder = environments, rules, folder / BEGUN_FOLDER
        self._records, self._jobs_folder = CallRecords(folder / STORE_NAME), str(folder / JOBS_FOLDER)
        self.receipts = Receipts(self._records.database, folder / _AUDIT_FOLDER, settings.witness)
        self.recorder = Recorder(folder, self._keep, lambda task: environments.settings(task).as_json())
        self._journal, self._reading = Journal(self.recorder.journal_folder), threading.Lock()
        self.recorder.is_enabled = settings.enabled
        self.recorder.is_durable, self.recorder.max_copy_bytes = settings.durable == "power", settings.max_copy

    @property
    def records(self) -> CallRecords:
        """The records, with those of all calls that have ended."""
        self.recorder.flush()
        return self._records

    def close(self) -> None:
        self.recorder.close()
        try:
            self.receipts.close()
        except (HandrailError, OSError) as error:
            log.warning("the receipts of the last calls are not signed yet: %s", error)
        self._records.database.close()

    def latest(self, count: int = 50, *, session: str | None = None, folder: str = "") -> list[CallRecord]:
        """The newest first. Those of a session, and those made in a folder or below it, if they are given."""
        return self._refreshed(self.records.latest(count, session=session, folder=folder))

    def last(self, count: int, *, session: str | None = None, folder: str = "") -> list[CallRecord]:
        """The last calls that changed something and hold. An undo is none of them."""
        found = self.latest(10_000, session=session, folder=folder)
        found = [one for one in found if one.is_changing and not (one.undone_by or one.is_pruned or one.tool == UNDO)]
        return found[:count]

    def describe(self, number: int, *, diff: bool = False) -> JsonDict:
        """What is different after the call: see `call_effects.describe`. Raises CallNotFound."""
        (record,) = self._refreshed([self.records.get(number)])
        told = self._ask(record, "describe", diff=diff)
        if record.ended is not None and record.digest and told.get("digest", record.digest) != record.digest:
            is_gone = told.get("digest") == _NOTHING  # elsewhere, where it expires by itself
            reason = _GONE if is_gone else "the journal is damaged: its entries are not those that were written"
            told |= {"damaged": reason, "can_undo": False, "reason": reason}
        elif record.is_pruned:
            told |= {"can_undo": False, "reason": _NOT_KEPT}
        return {**told, "record": as_json(record, self.keep_days)}

    def undo(
        self, number: int, *, dry_run: bool = False, session: str | None = None, task: str | None = None, **how: Any
    ) -> JsonDict:
        """Take a call back: see `call_effects.undo` (`only`, `force`). The undo is a call too, made in this session. Raises
        CallNotFound."""
        (record,), begun = self._refreshed([self.records.get(number)]), time.time()
        if record.is_pruned:
            return {**call_effects.refused(_NOT_KEPT), "call": number}
        mine = 0 if dry_run else self.recorder.numbers.next()
        # Where no mount keeps commands out of the journal, it has to be what it was when the call had ended.
        is_sealed = record.environment == LOCAL and self._rules().terminal.protect
        digest = "" if is_sealed or record.ended is None else record.digest
        answer = self._ask(record, "undo", number=mine, dry_run=dry_run, digest=digest, **how)
        if answer["status"] == "undone":
            only = how.get("only")
            head = f"call {number}" + (f" at {only}" if only else "")
            undone = record._replace(number=mine, session=session, task=task, tool=UNDO, head=head, begun=begun)
            undone = undone._replace(ended=time.time(), approval={}, undoes=number, undone_by=0, outcome="")
            self.recorder.put(Ended(undone, None))
            if not only:
                self._records.set_undone(number, mine)
                self._records.set_undone(record.undoes, 0)  # what an undo took back that is undone holds again
        elif answer["status"] == "refused" and record.ended is None and record.left_running:
            answer["reason"] += f" (left running: {', '.join(record.left_running)})"
        return {**answer, "call": number}

    def redo(self, number: int, **how: Any) -> JsonDict:
        """Bring back what undos took back, of the call or of parts of it. Raises CallNotFound."""
        answer = call_effects.refused(f"call {number} is not undone")
        while by := self.describe(number)["undone_by"]:
            more = self.undo(by, **how)
            if more["status"] != "undone":
                answer = more if answer["status"] == "refused" else answer  # else a further redo tells why
                break
            answer = more | {name: answer[name] + value for name, value in more.items() if isinstance(value, list)}
        return {**answer, "call": number}

    def prune(
        self, keep_days: float | None = None, keep_bytes: int | None = None, *, dry_run: bool = False
    ) -> JsonDict:
        """Forget what is too old, or too much."""
        self.latest(10_000)  # what has ended meanwhile can be forgotten
        days = self.keep_days if keep_days is None else keep_days
        return self._prune(days, self.keep_bytes if keep_bytes is None else keep_bytes, dry_run=dry_run)

    def _prune(self, days: float, most: int, *, dry_run: bool = False) -> JsonDict:
        done = call_effects.prune(self.recorder.journal_folder, days, most, dry_run=dry_run)
        if not dry_run:
            self._records.set_pruned(done["calls"])
        return done

    def interrupted(self, session: str) -> list[str]:
        """What a session has to be told of its calls that were interrupted, each once."""
        self.recover()
        untold = self.records.untold(session)
        return [f"Call {one.number} ({one.tool}: {one.head}) was {one.outcome}." for one in untold]

    def recover(self) -> None:
        """After a crash: finish the calls that were interrupted, as `effects.on_crash` says, and write what became of them."""
        found = {one["call"]: one for one in journal_undo.recover(self.recorder.journal_folder, self._on_crash)}
        for path, begun in left_behind(self._begun_folder):
            for about in begun:
                trial.remove(self._begun_folder.parent / trial.FOLDER / str(about["number"]))
            settled = [self._settle(about, found.get(about["number"])) for about in begun]
            if all(settled):
                path.unlink(missing_ok=True)

    def place_of(self, task: str | None) -> tuple[str, Environment | None]:
        """Where a task's shell is, and its environment, if its files are not on this machine."""
        environments = self._environments
        return environments.cwd(task), None if environments.has_host_paths(task) else environments.of(task)

    def _settle(self, about: JsonDict, found: JsonDict | None) -> bool:
        """Write the record of a call whose runtime is gone. False if its shell still has to end."""
        record = CallRecord(**about)
        if self._records.find(record.number) is not None:
            return True
        if "coverage" in about:  # it had ended, and only its record was missing
            self._keep(Ended(record, None))
            return True
        if record.environment != LOCAL:
            outcome = "interrupted, and what it has changed is not known (unknown_outcome): check before you repeat it"
            self._put(record._replace(outcome=outcome, is_told=False), {})
            return True
        told, outcome = self._told(record), "interrupted before it changed anything"
        if found is not None:
            outcome = f"interrupted after {found['changes']} of its changes; {found['outcome']}"
            outcome += f", but not {', '.join(found['failed'])}" if found["failed"] else ""
        elif told.get("rolled_back"):
            outcome = "interrupted; rolled back"
        elif told.get("digest") != _NOTHING:
            if told.get("ended") is None:
                return False
            outcome = "interrupted after all of its changes; kept"
        if told.get("hosts"):
            outcome += f"; what it did at {', '.join(told['hosts'])} is not known (unknown_outcome)"
        self._put(record._replace(outcome=outcome, is_told=False, ended=time.time()), told)
        return True

    def _keep(self, ended: Ended) -> None:
        """Write the record of a call, unless it has changed nothing and was watched."""
        record = ended.record
        try:
            told = self._told(record, ended.environment)
        except (HandrailError, OSError) as error:
            told = {"damaged": str(error)}
        if "damaged" in told:
            how = "none" if record.coverage == FULL else record.coverage
            record = record._replace(coverage=how, reason=told["damaged"])
        is_changed = any(told.get("counts", {}).values()) or told.get("hosts")
        if is_changed or record.ended is None or record.coverage != FULL:
            self._put(record, told)

    def _put(self, record: CallRecord, told: JsonDict) -> None:
        record = _with_changes(record, told)
        self._records.put(record)
        self._add_receipt(record)
        if call_effects.is_prune_due(self.recorder.journal_folder):
            self._prune(self.keep_days, self.keep_bytes)

    def _add_receipt(self, record: CallRecord) -> None:
        config, terminal = self._rules(), self._rules().terminal
        rules = config.approvals, config.command_allowlist, config.protect, terminal.protect, terminal.profile
        self.receipts.add(record, digest_of(repr(rules)))

    def _refreshed(self, records: list[CallRecord]) -> list[CallRecord]:
        """Those of calls that went on in the background as they are now."""
        if any(record.ended is None and record.environment == LOCAL for record in records):
            with contextlib.suppress(HandrailError, OSError):  # as below
                self.recover()  # whoever wrote its journal may have been killed, or the machine rebooted
        return [self._settled(record) for record in records]

    def _settled(self, record: CallRecord) -> CallRecord:
        if record.ended is not None or (record.environment != LOCAL and self._environments.peek(record.task) is None):
            return record
        is_gone = False
        try:
            if record.environment == LOCAL:
                # Only a background process has a status. Before the journal is read: it writes until it is gone.
                is_background = "".join(record.left_running[:1]).startswith(record.head)
                is_gone = is_background and not jobs.is_any_alive(self._jobs_folder, record.number)
            told = self._told(record)
            if is_gone and told.get("digest") == _NOTHING and not self._journal.is_running(record.number):
                told["ended"] = time.time()
            record = _with_changes(record, told)._replace(ended=told.get("ended"))
            if record.ended is not None:
                with self._records.database.transaction():  # another process may see it at the same time
                    if self._records.settle(record):
                        self._add_receipt(record)
        except (HandrailError, OSError):
            log.debug("call %d cannot be refreshed", record.number, exc_info=True)
        return record

    def _told(self, record: CallRecord, environment: Environment | None = None) -> JsonDict:
        with self._reading if record.environment == LOCAL else contextlib.nullcontext():
            journal = {"journal": self._journal} if record.environment == LOCAL else {}
            return self._ask(record, "describe", environment, **journal)

    def _ask(self, record: CallRecord, operation: str, environment: Environment | None = None, **how: Any) -> JsonDict:
        """Ask the journal that the call is in: of this machine, or beside the shell elsewhere. What was written before the call
        has begun is read only if the clock was set back meanwhile."""
        if record.environment == LOCAL:
            if min(record.ended or time.time(), time.time()) >= record.begun:
                how["since"] = record.begun - _MARGIN_SECONDS
            answer = getattr(call_effects, operation)(self.recorder.journal_folder, record.number, **how)
        else:
            with self._opened(record, environment) as opened:
                answer = opened.call_effects(operation, call=record.number, **how)
        return cast("JsonDict", answer)

    @contextlib.contextmanager
    def _opened(self, record: CallRecord, environment: Environment | None) -> Iterator[Any]:
        of_task = environment or self._environments.peek(record.task)
        if environment is not None or self._environments.settings(record.task).as_json() == record.settings:
            environment = of_task
        if environment is not None:
            yield environment
            return
        try:
            settings = EnvironmentSettings(**record.settings)
        except TypeError:
            raise ToolFailed(f"call {record.number} was made by another version of Handrail; use that one") from None
        with contextlib.closing(self._environments.open(settings)) as made:
            yield made


def _with_changes(record: CallRecord, told: JsonDict) -> CallRecord:
    counts, hosts, digest = told.get("counts", {}), len(told.get("hosts", ())), told.get("digest", "")
    return record._replace(counts=counts, hosts=hosts, digest=digest)


def as_json(record: CallRecord, keep_days: float) -> JsonDict:
    """For programs: without what is only needed to reach the environment again."""
    shown = record._asdict()
    del shown["settings"], shown["is_told"]
    can_be_undone = record.is_changing and not (record.undone_by or record.is_pruned)
    until = record.ended + keep_days * 86_400 if record.ended is not None and can_be_undone else None
    return {**shown, "can_be_undone_until": until}


def folder_here() -> str:
    return os.path.realpath(os.getcwd())
