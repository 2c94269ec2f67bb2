"""What the user configured about approvals, as it is now: a change of the file counts from the next action on.

A file that cannot be read any more allows nothing, and an answer 'always' is written to it.
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
from ..config import Config, load_config, located
from ..errors import ConfigError
from .policy import Policy, read_policy, strictest
from .project_policy import tightened

if TYPE_CHECKING:
    from pathlib import Path

    from ..judge.rules import Rule
    from ..protocols import Answer
    from .grants import Kind

log = logging.getLogger(__name__)


class _Read(NamedTuple):
    """What was read, and what the file was like then."""

    stamp: tuple[int, ...]
    config: Config
    policy: Policy | ConfigError


class Settings:
    """Of a configuration that is given, or else of the file at `path`, which is read anew when it changes.

    `project` is the file of a project, which tightens. `yolo`: nobody is asked. `more_rules` are those that plugins bring.
    In an agent's own shell nothing that allows holds, whatever the settings there say.
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
        self._read = self._read_anew(self._look(), config or Config())

    def policy(self) -> Policy:
        """Raises ConfigError when the settings cannot be used."""
        stamp = self._look()
        if stamp != self._read.stamp:
            with self._lock:
                self._read = self._read_anew(stamp, self._read.config)
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
        """Whether this process is itself something that an agent runs: then nobody here can say yes."""
        return started_by_agent()

    def lift_asking(self, lifted: bool = True) -> None:
        """Ask nobody from now on: `--yolo`. Or ask again."""
        with self._lock:
            self._yolo = lifted
            self._read = self._read_anew(self._look(), self._read.config)

    def leave_unattended(self) -> None:
        """Nobody watches from now on: what would ask is not let pass by a mode, nor decided by a model."""
        with self._lock:
            self._unattended = True
            self._read = self._read_anew(self._look(), self._read.config)

    @property
    def timeout(self) -> float:
        return self.config.approvals.timeout

    def task_limits(self, answer: Answer) -> tuple[float, int]:
        """Seconds and uses that a yes for the task holds."""
        settings = self.config.approvals
        seconds = settings.task_minutes * 60 if answer.seconds is None else answer.seconds
        return seconds, settings.task_uses if answer.uses is None else answer.uses

    async def allow_always(self, kinds: Sequence[Kind]) -> bool:
        """Write the kinds to `command_allowlist`. False when there is no file to write to, or it cannot be written."""
        if self._path is None:
            return False
        writing = asyncio.wrap_future(pool.submit(add_to_allowlist, self._path, [str(kind) for kind in kinds]))
        try:
            await asyncio.shield(writing)
        except ConfigError as error:
            log.warning("'always' holds for this session only: %s", error)
            return False
        return True

    def _look(self) -> tuple[int, ...]:
        return (*_stamp(self._path), *_stamp(self._project))

    def _read_anew(self, stamp: tuple[int, ...], config: Config) -> _Read:
        try:
            if self._path is not None:
                config = load_config(self._path)
            policy = read_policy(tightened(config, self._project), yolo=self._yolo, more_rules=self._more_rules)
            if self._unattended:
                policy = policy._replace(asks=None, smart=False)
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
    from ..config import ConfigFile

    def change(settings: dict[str, Any]) -> None:
        listed = settings.setdefault("command_allowlist", [])
        listed += [key for key in dict.fromkeys(keys) if key not in listed]

    ConfigFile(path).update(change)


def remove_from_allowlist(path: Path, key: str) -> bool:
    """False when the key is not in it. Raises ConfigError."""
    from ..config import ConfigFile

    found = False

    def change(settings: dict[str, Any]) -> None:
        nonlocal found
        listed = settings.get("command_allowlist", [])
        found = key in listed
        if found:
            listed.remove(key)

    ConfigFile(path).update(change)
    return found
