"""What the judge may look up about the machine where a command will run, handed in by the caller: files, and the shell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol


class DiskEntry(NamedTuple):
    """What is at a path, with links followed."""

    path: str
    """Where it really is: the target of a link."""
    is_dir: bool
    size: int
    is_new: bool = False
    """It was made or changed since the session began, and is not what the repository has."""


class Disk(Protocol):
    """Read-only access to files. Paths are absolute, or start with `~/`. Nothing here may raise."""

    def find(self, path: str) -> DiskEntry | None:
        """None when there is nothing, or when it cannot be looked up."""

    def read(self, path: str, max_bytes: int) -> bytes | None:
        """The start of a regular file; None when it cannot be read."""

    def names(self, path: str) -> Sequence[str]:
        """The names in a folder; empty when it cannot be read."""


@dataclass(slots=True)
class ShellMemory:
    """What earlier commands left in a shell that lives on. `assess` reads it, and adds what the command would leave."""

    aliases: dict[str, str] = field(default_factory=dict)
    path: str = ""
    """PATH, where a command has set it; what is unknown in it stays so."""
    variables: dict[str, str] = field(default_factory=dict)
    """Exported variables that say where programs find code: PYTHONPATH and its like."""
