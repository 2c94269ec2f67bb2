"""The user's approval settings as they are now: a stricter file counts from the next action on, a weaker one once it is
confirmed.

A file that cannot be read any more allows nothing. An answer 'always' is written to the file. A project's
`.handrail/config.yaml` can only tighten what the user has configured, so it needs no trust.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..base.own_process import started_by_agent
from ..base.workers import pool
from ..config.paths import POLICY_FILE, project_folder, read_text
from ..config.store import Confirmed, located, overridden, read_config
from ..errors import ConfigError, Denied
from ..protocols import Answer
from ..settings.schema import Config
from .allowlist import GrantKey, deny_entries
from .policy import Policy, checked, read_policy, strictest

if TYPE_CHECKING:
    from ..config.strength import Change
    from ..judge.rules import Rule

log = logging.getLogger(__name__)


class _Read(NamedTuple):
    """What was read, and the files' stamps at that time."""

    stamp: tuple[int, ...]
    config: Config
    policy: Policy | ConfigError


class Settings:
    """Those of `config`, or of the file at `path`, which is read again when it changes.

    What becomes stricter in the file holds at once. What becomes weaker than `baseline` (by default what is read first) waits
    until it is confirmed: here, when somebody is asked, or by a record in `confirmed`. The same holds for `project`, a
    project's policy file, which can only tighten. With `yolo` nobody is asked. `more_rules` come from plugins.
    Inside an agent's own shell nothing that allows is in force, whatever the settings there say.
    """

    def __init__(
        self,
        config: Config | None = None,
        *,
        path: Path | None = None,
        project: Path | None = None,
        yolo: bool = False,
        more_rules: Sequence[Rule] = (),
        confirmed: Confirmed | None = None,
        baseline: Config | None = None,
    ) -> None:
        self._path, self._yolo, self._unattended = path, yolo, False
        self._confirmed = confirmed
        self._own = None if path is None else WatchedFile(path, confirmed, lambda: read_config(path), baseline)
        self._project = None if project is None else WatchedFile(project, confirmed, lambda: project_settings(project))
        self._more_rules = tuple(more_rules)
        self._lock = threading.Lock()
        watched = [each.path for each in self._files]
        watched += [confirmed.path] if watched and confirmed is not None else []
        self._watched = tuple(map(os.fspath, watched))
        self._read = self._reload(self._look(), config or Config())

    def policy(self) -> Policy:
        """Raises ConfigError when the settings cannot be used."""
        stamp = self._look()
        if stamp != self._read.stamp:
            with self._lock:
                self._read = self._reload(stamp, self._read.config)
        policy = self._read.policy
        if isinstance(policy, ConfigError):
            raise policy
        return policy

    @property
    def config(self) -> Config:
        """The last that could be used."""
        return self._read.config

    @cached_property
    def started_by_agent(self) -> bool:
        """Whether an agent started this process: then nobody here may approve."""
        return started_by_agent()

    def lift_asking(self) -> None:
        """Stop asking (`--yolo`)."""
        with self._lock:
            self._yolo = True
            self._read = self._reload(self._look(), self._read.config)

    def leave_unattended(self) -> None:
        """Nobody watches from now on: neither a mode nor a model may let pass what would ask."""
        with self._lock:
            self._unattended = True
            self._read = self._reload(self._look(), self._read.config)

    @property
    def takes_modes(self) -> bool:
        """Whether a session may have a mode of its own."""
        return not (self._unattended or self.started_by_agent)

    @property
    def waiting(self) -> tuple[Change, ...]:
        """What became weaker in a file, and nobody has said yes or no to yet."""
        return tuple([change for each in self._files for change in each.unanswered])

    def answer_waiting(self, asked: Sequence[Change], *, allowed: bool) -> None:
        """Apply what somebody was asked about, or do not, and do not ask about it again."""
        with self._lock:
            for each in self._files:
                each.answer(asked, allowed=allowed)
            self._read = self._reload(self._look(), self._read.config)

    @property
    def timeout(self) -> float:
        return self.config.approvals.timeout

    def task_limits(self, answer: Answer) -> tuple[float, int]:
        """For how many seconds and uses a yes for the task is valid."""
        settings = self.config.approvals
        seconds = settings.task_minutes * 60 if answer.seconds is None else answer.seconds
        return seconds, settings.task_uses if answer.uses is None else answer.uses

    async def allow_always(self, keys: Sequence[GrantKey]) -> bool:
        """Write the keys to `command_allowlist`. False when there is no file to write to, or it cannot be written."""
        if self._path is None or self._own is None:
            return False
        texts = list(map(str, keys))
        try:
            await asyncio.shield(asyncio.wrap_future(pool.submit(add_to_allowlist, self._path, texts, self._confirmed)))
        except ConfigError as error:
            log.warning("'always' is valid for this session only: %s", error)
            return False
        self._own.allow(texts)
        return True

    @property
    def _files(self) -> list[WatchedFile]:
        return [each for each in (self._own, self._project) if each is not None]

    def _look(self) -> tuple[int, ...]:
        stamps: list[int] = []
        for path in self._watched:
            try:
                found = os.stat(path)
                stamps += (found.st_mtime_ns, found.st_size, found.st_ino)
            except OSError:
                stamps.append(0)
        return tuple(stamps)

    def _reload(self, stamp: tuple[int, ...], config: Config) -> _Read:
        try:
            if self._own is not None:
                config = overridden(self._own.read(), os.environ)
            project = self._project.read() if self._project is not None else None
            policy = read_policy(tightened(config, project), yolo=self._yolo, more_rules=self._more_rules)
            for problem in policy.ignored:
                log.warning("%s; it allows nothing", located(problem, self._path))
            if self._unattended:
                policy = policy._replace(ask_disabled_by=None, smart=False)
        except ConfigError as error:
            return _Read(stamp, config, located(error, self._path) if self._path is not None else error)
        return _Read(stamp, config, strictest(policy) if self.started_by_agent else policy)


def add_to_allowlist(
    path: Path, keys: Sequence[str], confirmed: Confirmed | None = None, *, commands: Sequence[str] = ()
) -> None:
    """Write keys to `command_allowlist`, and commands to `approvals.allow`. Keeps the file's comments; safe beside other
    writers. Raises ConfigError."""
    from ..config.config_file import ConfigFile  # writing is rare, and loads much

    def change(settings: dict[str, Any]) -> None:
        lists = [(settings.setdefault("approvals", {}).setdefault("allow", []), commands)] if commands else []
        for listed, new in [*lists, *([(settings.setdefault("command_allowlist", []), keys)] if keys else [])]:
            listed += [text for text in dict.fromkeys(new) if text not in listed]

    ConfigFile(path, confirmed).update(change)


def remove_from_allowlist(path: Path, key: str) -> bool:
    """False when the key is not in it. Raises ConfigError."""
    from ..config.config_file import ConfigFile  # writing is rare, and loads much

    found = False

    def change(settings: dict[str, Any]) -> None:
        nonlocal found
        listed = settings.get("command_allowlist", [])
        found = key in listed
        if found:
            listed.remove(key)

    ConfigFile(path).update(change)
    return found


# The sections that a gate reads; the others count at a start.
_OF_GATE = ("approvals.", "approval_rules.", "command_allowlist")


class WatchedFile:
    """`read_file` reads it. `baseline` is what holds; else what was `confirmed` for it does, or what is read first."""

    def __init__(
        self, path: Path, confirmed: Confirmed | None, read_file: Callable[[], Config], baseline: Config | None = None
    ) -> None:
        self.path, self._confirmed, self._read_file = path, confirmed, read_file
        self._holds = baseline
        self._wanted: Config | None = None
        self._waiting: list[Change] = []
        self._refused: list[Change] = []

    @property
    def unanswered(self) -> list[Change]:
        return [change for change in self._waiting if change not in self._refused]

    def read(self) -> Config:
        """The configuration that holds now. Raises ConfigError."""
        wanted = self._read_file()
        # What was confirmed, by this process or another; what is kept here where nothing can be recorded.
        before = (self._confirmed.config(self.path) if self._confirmed is not None else None) or self._holds
        if before is None:
            self._keep(wanted)
            return wanted
        holds, waiting = before, list[Any]()
        if before != wanted:
            from ..config.strength import held_back  # a file that never changes needs no comparison

            holds, changes = held_back(before, wanted)
            waiting = [change for change in changes if change.key.startswith(_OF_GATE)]
        if waiting and waiting != self._waiting:
            weaker = f"{self.path} became weaker: {'; '.join(map(str, waiting))}"
            log.warning("%s; that waits for your yes, or `handrail config confirm` in a terminal of yours", weaker)
        self._wanted, self._waiting = wanted, waiting
        if holds != before:
            self._keep(holds)
        self._holds = holds
        return holds

    def allow(self, keys: Sequence[str]) -> None:
        """Somebody answered 'always': these are in the file's allowlist now, and hold."""
        if self._holds is not None:
            listed = dict.fromkeys([*self._holds.command_allowlist, *keys])
            self._holds = dataclasses.replace(self._holds, command_allowlist=tuple(listed))

    def answer(self, asked: Sequence[Change], *, allowed: bool) -> None:
        """Let hold what was asked about, or do not ask about it again."""
        mine = [change for change in self._waiting if change in asked]
        if not allowed:
            self._refused += mine
        elif mine and mine == self._waiting and self._wanted is not None:  # nothing else was changed meanwhile
            self._keep(self._wanted)

    def _keep(self, config: Config) -> None:
        self._holds = config
        try:
            if self._confirmed is not None:
                self._confirmed.confirm(self.path, config)
        except (ConfigError, Denied):  # a read-only state, an agent's process: it holds as long as this runs
            self._confirmed = None


_APPROVALS, _RULES = "approvals", "approval_rules"
_TIGHTEN = ("deny", "ask_tools")


def policy_file(start: Path | None = None) -> Path | None:
    """The policy file of the current project, which need not exist. None outside of projects."""
    folder = project_folder(start)
    return None if folder is None else folder / POLICY_FILE


def project_settings(path: Path) -> Config:
    """What a project's file adds. Raises ConfigError for one that does more than tighten."""
    text = read_text(path)
    if text is None:
        return Config()
    from ..config.validation import parse

    _check(parse(text, path=str(path)).value or {}, path)
    project = read_config(path)
    try:
        checked(f"{_APPROVALS}.deny", lambda: deny_entries(project.approvals.deny))
    except ConfigError as error:
        raise located(error, path) from None
    return project


def tightened(config: Config, project: Config | None) -> Config:
    """The user's settings with the project's added."""
    if project is None:
        return config
    added: Any = {name: (*getattr(config.approvals, name), *getattr(project.approvals, name)) for name in _TIGHTEN}
    approvals = dataclasses.replace(config.approvals, **added)
    # A rule of the user's is not replaced by a weaker one of the same name.
    rules = {**project.approval_rules, **config.approval_rules}
    return dataclasses.replace(config, approvals=approvals, approval_rules=rules)


def _check(settings: Mapping[str, Any], path: Path) -> None:
    can = f"a project's file can have {_APPROVALS}.{', '.join(_TIGHTEN)} and {_RULES}, and nothing that allows"
    for key, value in settings.items() if isinstance(settings, dict) else ():
        if key not in (_APPROVALS, _RULES):
            raise ConfigError(can, path=str(path), key=str(key))
        wrong = [name for name in value or () if key == _APPROVALS and name not in _TIGHTEN]
        if wrong:
            raise ConfigError(can, path=str(path), key=f"{key}.{wrong[0]}")
