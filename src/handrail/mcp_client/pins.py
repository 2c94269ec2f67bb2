"""The definitions of a server's tools when they were trusted: a tool whose definition changes is hidden from models."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ..base.own_process import refuse_agents
from ..base.safe_text import suspicion_of
from ..config.paths import locked, read_text, state_dir, write_text
from ..errors import ConfigError, Denied
from .server_config import Server
from .tool_listing import Listed

_MAX_DESCRIPTION = 16_000


class Pins:
    """The trusted definitions of one server, by hash."""

    def __init__(self, server: Server, folder: Path | None = None) -> None:
        self.path = (folder or state_dir() / "mcp") / f"{server.key}.json"

    def review(self, tools: Iterable[Listed]) -> dict[str, str]:
        """Why some tools need a review by you, by name. A new tool that is not suspicious is trusted as it is."""
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
            with contextlib.suppress(Denied):  # in an agent's own shell nothing becomes trusted for longer
                self._add(new)
        return doubts

    def trust(self, tools: Iterable[Listed]) -> None:
        self._add({tool.name: definition_hash(tool) for tool in tools})

    def forget(self) -> None:
        refuse_agents("forget what is trusted")
        for path in (self.path, self.path.with_name(f"{self.path.name}.lock")):
            with contextlib.suppress(FileNotFoundError):
                path.unlink()

    def _read(self) -> dict[str, str]:
        text = read_text(self.path)
        try:
            known = json.loads(text or "{}")
        except ValueError:
            raise ConfigError("is damaged; remove it, and trust the server again", path=str(self.path)) from None
        return known if isinstance(known, dict) else {}

    def _add(self, more: dict[str, str]) -> None:
        with locked(self.path) as target:
            write_text(target, json.dumps({**self._read(), **more}, indent=0) + "\n")


def definition_hash(tool: Listed) -> str:
    whole = json.dumps([tool.name, tool.description, tool.schema, tool.annotations], sort_keys=True)
    return hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def suspicion(tool: Listed) -> str:
    """Why you should review a tool before a model sees it; empty if nothing is suspicious."""
    if len(tool.description) > _MAX_DESCRIPTION:
        return f"its description has {len(tool.description):,} characters"
    for text in _texts(tool):
        found = suspicion_of(text)
        if found:
            return f"its definition {found}"
    return ""


def _texts(tool: Listed) -> Iterator[str]:
    yield tool.name
    yield tool.description
    left: list[Any] = [tool.schema, tool.annotations]
    while left:
        value = left.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            left.extend(value)
            left.extend(value.values())
        elif isinstance(value, list):
            left.extend(value)
