"""What the user has trusted, bound to its content: a project's plugins, its MCP servers, its skills.

A project may be somebody else's: nothing in it runs just because it is there. Trust is for one content; a changed file has to
be trusted again.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import ConfigError
from .paths import locked, read_text, state_dir, write_text

TRUST_FILE = "trust.json"


class Trusted(NamedTuple):
    """One trusted thing. `kind` says what it is ("plugin", "mcp"), `path` where it is."""

    kind: str
    path: str
    digest: str
    at: float


class Trust:
    """The trust file. A damaged file trusts nothing, and changing it raises an error."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or state_dir() / TRUST_FILE

    def is_trusted(self, kind: str, path: str | Path, digest: str) -> bool:
        try:
            return any(each[:3] == (kind, str(path), digest) for each in self.entries())
        except ConfigError:
            return False

    def has_changed(self, kind: str, path: str | Path, digest: str) -> bool:
        """Whether something else was trusted at that path than what is there now."""
        try:
            return any(each[:2] == (kind, str(path)) and each.digest != digest for each in self.entries())
        except ConfigError:
            return False

    def entries(self) -> list[Trusted]:
        """Everything that is trusted. Raises ConfigError for a damaged file."""
        text = read_text(self.path)
        if not text:
            return []
        try:
            return [Trusted(**each) for each in json.loads(text)]
        except (ValueError, TypeError) as error:
            raise ConfigError(f"is damaged ({error}); remove it, and trust again", path=str(self.path)) from None

    def trust(self, kind: str, path: str | Path, digest: str) -> None:
        """Trust this content at this path, instead of what was trusted there before."""
        with locked(self.path) as target:
            others = [each for each in self.entries() if each[:2] != (kind, str(path))]
            self._write(target, [*others, Trusted(kind, str(path), digest, time.time())])

    def revoke(self, kind: str, path: str | Path) -> bool:
        """Whether there was something to revoke."""
        with locked(self.path) as target:
            before = self.entries()
            left = [each for each in before if each[:2] != (kind, str(path))]
            self._write(target, left)
        return len(left) < len(before)

    @staticmethod
    def _write(target: Path, entries: list[Trusted]) -> None:
        listed: list[dict[str, Any]] = [each._asdict() for each in entries]
        write_text(target, json.dumps(listed, indent=1) + "\n")


def digest(files: Mapping[str, bytes]) -> str:
    """A digest of the names and contents of some files."""
    whole = hashlib.sha256()
    for name in sorted(files):
        for part in (name.encode("utf-8", "surrogateescape"), files[name]):
            whole.update(len(part).to_bytes(8, "big") + part)
    return whole.hexdigest()
