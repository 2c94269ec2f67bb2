"""What the user has trusted, bound to its content: a project's plugins, its MCP servers, its skills.

A project may be somebody else's: nothing in it runs just because it is there. Trust is for one content; a changed file has to
be trusted again.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path

from ..errors import ConfigError
from .json_file import JsonFile
from .paths import state_dir

TRUST_FILE = "trust.json"


class Trust(JsonFile):
    """The digest of each trusted thing, by its kind ("plugin", "mcp", ...) and path. A damaged file trusts nothing, and changing
    it raises an error."""

    def __init__(self, path: Path | None = None) -> None:
        super().__init__(path or state_dir() / TRUST_FILE)

    def is_trusted(self, kind: str, path: str | Path, digest: str) -> bool:
        return self._digest(kind, path) == digest

    def has_changed(self, kind: str, path: str | Path, digest: str) -> bool:
        """Whether something else was trusted at that path than what is there now."""
        return self._digest(kind, path) not in (None, digest)

    def trust(self, kind: str, path: str | Path, digest: str) -> None:
        """Trust this content at this path, instead of what was trusted there before."""
        self.set(f"{kind} {path}", digest)

    def revoke(self, kind: str, path: str | Path) -> bool:
        """Whether there was something to revoke."""
        was_trusted = self._digest(kind, path) is not None
        self.delete(f"{kind} {path}")
        return was_trusted

    def _digest(self, kind: str, path: str | Path) -> str | None:
        try:
            found: str | None = self.get(f"{kind} {path}")
        except ConfigError:
            return None
        return found


def digest(files: Mapping[str, bytes]) -> str:
    """A digest of the names and contents of some files."""
    whole = hashlib.sha256()
    for name in sorted(files):
        for part in (name.encode("utf-8", "surrogateescape"), files[name]):
            whole.update(len(part).to_bytes(8, "big") + part)
    return whole.hexdigest()
