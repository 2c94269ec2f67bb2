"""What each tool of a server looked like when it was trusted: one that changes behind our back is not shown to a model."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

from ..config.files import locked, read_text, write_text
from ..config.paths import state_dir
from ..errors import ConfigError
from .server_config import Server
from .tool_inspection import suspicion
from .tool_listing import Listed


class Pins:
    """The definitions of one server that were trusted, by hash."""

    def __init__(self, server: Server, folder: Path | None = None) -> None:
        self.path = (folder or state_dir() / "mcp") / f"{server.key}.json"

    def review(self, tools: Iterable[Listed]) -> dict[str, str]:
        """Why some of the tools need a person's look, by name. A new one that is not strange is trusted as it is now."""
        known = self._read()
        doubts: dict[str, str] = {}
        new: dict[str, str] = {}
        for tool in tools:
            now = definition_hash(tool)
            if known.get(tool.name) == now:
                continue
            if tool.name in known:
                doubts[tool.name] = "its definition has changed since it was trusted"
            elif why := suspicion(tool):
                doubts[tool.name] = why
            else:
                new[tool.name] = now
        if new:
            self._add(new)
        return doubts

    def trust(self, tools: Iterable[Listed]) -> None:
        self._add({tool.name: definition_hash(tool) for tool in tools})

    def forget(self) -> None:
        for path in (self.path, self.path.with_name(f"{self.path.name}.lock")):
            with contextlib.suppress(FileNotFoundError):
                path.unlink()

    def _read(self) -> dict[str, str]:
        text = read_text(self.path)
        try:
            known = json.loads(text or "{}")
        except ValueError:
            raise ConfigError("is damaged; remove it, and trust anew", path=str(self.path)) from None
        return known if isinstance(known, dict) else {}

    def _add(self, more: dict[str, str]) -> None:
        with locked(self.path) as target:
            write_text(target, json.dumps({**self._read(), **more}, indent=0) + "\n")


def definition_hash(tool: Listed) -> str:
    whole = json.dumps([tool.name, tool.description, tool.schema, tool.annotations], sort_keys=True)
    return hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:32]
