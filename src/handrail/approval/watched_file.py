"""A configuration file beside a running gate: what becomes stricter in it counts at once, what becomes weaker waits."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import ConfigError, Denied

if TYPE_CHECKING:
    from ..config.confirmed import Confirmed
    from ..config.strength import Change
    from ..settings.schema import Config

log = logging.getLogger(__name__)

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
        before = self._known()
        if before is None:
            self._keep(wanted)
            return wanted
        from ..config.strength import held_back  # a file that never changes needs no comparison

        holds, changes = held_back(before, wanted)
        waiting = [change for change in changes if change.key.startswith(_OF_GATE)]
        if waiting and waiting != self._waiting:
            log.warning(
                "%s became weaker: %s; that waits for your yes, or `handrail config confirm` in a terminal of yours",
                self.path,
                "; ".join(map(str, waiting)),
            )
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
        if not mine:
            return
        if not allowed:
            self._refused += mine
        elif mine == self._waiting and self._wanted is not None:  # nothing else was changed meanwhile
            self._keep(self._wanted)

    def _known(self) -> Config | None:
        """What was confirmed, by this process or another; what is kept here where nothing can be recorded."""
        recorded = self._confirmed.config(self.path) if self._confirmed is not None else None
        return self._holds if recorded is None else recorded

    def _keep(self, config: Config) -> None:
        self._holds = config
        if self._confirmed is None:
            return
        try:
            self._confirmed.confirm(self.path, config)
        except (ConfigError, Denied):  # a read-only state, an agent's process: it holds as long as this runs
            self._confirmed = None
