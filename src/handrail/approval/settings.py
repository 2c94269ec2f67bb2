"""The user's approval settings as they are now: a change of the file counts from the next action on.

A file that cannot be read any more allows nothing. An answer 'always' is written to the file.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from ..base.agent_ancestry import started_by_agent
from ..base.workers import pool
from ..config import Config, ConfigFile, located
from ..errors import ConfigError
from .policy import Policy, read_policy, strictest
from .project_policy import tightened

if TYPE_CHECKING:
    from pathlib import Path

    from ..judge.rules import Rule
    from ..protocols import Answer
    from .grants import GrantKey

log = logging.getLogger(__name__)


class _Read(NamedTuple):
    """What was read, and the files' stamps at that time."""

    stamp: tuple[int, ...]
    config: Config
    policy: Policy | ConfigError


class Settings:
    """Those of `config`, or of the file at `path`, which is read again when it changes.

    `project` is a project's policy file, which can only tighten. With `yolo` nobody is asked. `more_rules` come from plugins.
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
    ) -> None:
        self._path, self._project, self._yolo, self._unattended = path, project, yolo, False
        self._more_rules = tuple(more_rules)
        self._lock = threading.Lock()
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

    def lift_asking(self, lifted: bool = True) -> None:
        """Stop asking (`--yolo`), or ask again."""
        with self._lock:
            self._yolo = lifted
            self._read = self._reload(self._look(), self._read.config)

    def leave_unattended(self) -> None:
        """Nobody watches from now on: neither a mode nor a model may let pass what would ask."""
        with self._lock:
            self._unattended = True
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
        if self._path is None:
            return False
        writing = asyncio.wrap_future(pool.submit(add_to_allowlist, self._path, [str(key) for key in keys]))
        try:
            await asyncio.shield(writing)
        except ConfigError as error:
            log.warning("'always' is valid for this session only: %s", error)
            return False
        return True

    def _look(self) -> tuple[int, ...]:
        return (*_stamp(self._path), *_stamp(self._project))

    def _reload(self, stamp: tuple[int, ...], config: Config) -> _Read:
        try:
            if self._path is not None:
                config = ConfigFile(self._path).load(os.environ)
            policy = read_policy(tightened(config, self._project), yolo=self._yolo, more_rules=self._more_rules)
            if self._unattended:
                policy = policy._replace(ask_disabled_by=None, smart=False)
        except ConfigError as error:
            return _Read(stamp, config, located(error, self._path) if self._path is not None else error)
        return _Read(stamp, config, strictest(policy) if self.started_by_agent else policy)


def _stamp(path: Path | None) -> tuple[int, ...]:
    if path is None:
        return ()
    try:
        found = os.stat(path)
    except OSError:
        return (0,)
    return (found.st_mtime_ns, found.st_size, found.st_ino)


def add_to_allowlist(path: Path, keys: Sequence[str]) -> None:
    """Keeps the file's comments; safe beside other writers. Raises ConfigError."""

    def change(settings: dict[str, Any]) -> None:
        listed = settings.setdefault("command_allowlist", [])
        listed += [key for key in dict.fromkeys(keys) if key not in listed]

    ConfigFile(path).update(change)


def remove_from_allowlist(path: Path, key: str) -> bool:
    """False when the key is not in it. Raises ConfigError."""
    found = False

    def change(settings: dict[str, Any]) -> None:
        nonlocal found
        listed = settings.get("command_allowlist", [])
        found = key in listed
        if found:
            listed.remove(key)

    ConfigFile(path).update(change)
    return found
