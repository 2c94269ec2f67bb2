"""Which tools there are, and which of them can be used now."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from ..types import ToolCall
from .availability import Availability
from .entry import ToolEntry

if TYPE_CHECKING:
    from ..types import JsonDict, Unavailable

log = logging.getLogger(__name__)

DEFAULT_EMOJI = "⚡"
DEFAULT_MAX_RESULT_CHARS = 100_000


class ToolTable:
    """Tools by name, to be asked. Every answer is a snapshot that belongs to the caller."""

    def __init__(self, availability: Availability) -> None:
        self.availability = availability
        self._tools: dict[str, ToolEntry] = {}
        self._aliases: dict[str, str] = {}
        self._gone: set[str] = set()
        self._lock = threading.RLock()
        self._loader: Callable[[], object] | None = None

    def load_before_first_question(self, loader: Callable[[], object] | None) -> None:
        """Call `loader`, which registers more tools, before the first question is answered. None: everything is here."""
        self._loader = loader

    def _load(self) -> None:
        if self._loader is not None:
            loader, self._loader = self._loader, None
            loader()

    def get_entry(self, name: str) -> ToolEntry | None:
        self._load()
        return self._tools.get(name)

    def get_entries(self, names: Iterable[str]) -> tuple[ToolEntry, ...]:
        """Those that are there, in the order of the names."""
        self._load()
        with self._lock:
            tools = self._tools
            return tuple([tools[name] for name in names if name in tools])

    def entries(self) -> list[ToolEntry]:
        self._load()
        with self._lock:
            return list(self._tools.values())

    def get_all_tool_names(self) -> list[str]:
        self._load()
        with self._lock:
            return sorted(self._tools)

    def get_names_ever_used(self) -> set[str]:
        """The names that are tools, or were: texts may still speak of them."""
        self._load()
        with self._lock:
            return {*self._tools, *self._gone}

    def get_tool_names_for_toolset(self, toolset: str) -> list[str]:
        return sorted(entry.name for entry in self.entries() if entry.toolset == toolset)

    def get_toolset_for_tool(self, name: str) -> str | None:
        self._load()
        entry = self._tools.get(name)
        return entry.toolset if entry else None

    def get_tool_to_toolset_map(self) -> dict[str, str]:
        return {entry.name: entry.toolset for entry in self.entries()}

    def get_registered_toolset_names(self) -> list[str]:
        return sorted({entry.toolset for entry in self.entries()})

    def get_registered_toolset_aliases(self) -> dict[str, str]:
        with self._lock:
            return dict(self._aliases)

    def get_toolset_alias_target(self, alias: str) -> str | None:
        return self._aliases.get(alias)

    def get_toolsets(self) -> dict[str, list[str]]:
        """Toolsets with the names of their tools, both sorted."""
        sets: dict[str, list[str]] = {}
        for entry in self.entries():
            sets.setdefault(entry.toolset, []).append(entry.name)
        return {toolset: sorted(sets[toolset]) for toolset in sorted(sets)}

    def get_toolset_description(self, toolset: str) -> str:
        """The line that the set's first tool with one gives."""
        given = (entry.toolset_description for entry in self.entries() if entry.toolset == toolset)
        return next(filter(None, given), "")

    def get_example(self, name: str) -> list[ToolCall]:
        """The calls that show how a tool is used, in order; the last one is of the tool itself."""
        entry = self.get_entry(name)
        example = entry.example if entry is not None and entry.example is not None else ()
        calls: list[ToolCall] = []
        for step in [example] if isinstance(example, Mapping) else example:
            if isinstance(step, str):
                calls += self.get_example(step)
            else:
                tool, arguments = step if isinstance(step, tuple) else (name, step)
                calls.append(ToolCall(tool, dict(arguments)))
        return calls

    def get_schema(self, name: str) -> JsonDict | None:
        self._load()
        entry = self._tools.get(name)
        return entry.schema if entry else None

    def get_emoji(self, name: str, default: str = DEFAULT_EMOJI) -> str:
        entry = self._tools.get(name)
        return (entry.emoji if entry else "") or default

    def get_max_result_size(self, name: str, default: int | float | None = None) -> int | float:
        entry = self._tools.get(name)
        if entry is not None and entry.max_result_size_chars is not None:
            return entry.max_result_size_chars
        return DEFAULT_MAX_RESULT_CHARS if default is None else default

    # What can be used now.

    def get_definitions(self, names: Iterable[str] | None = None, quiet: bool = False) -> list[JsonDict]:
        """OpenAI definitions of the tools that can be used now, sorted by name."""
        wanted = self.get_all_tool_names() if names is None else sorted(set(names))
        entries = [entry for name in wanted if (entry := self._tools.get(name)) is not None]
        missing = self.availability.unavailable(entries)
        if missing and not quiet:
            for name, why in missing.items():
                log.info("tool %s is not listed: %s", name, why)
        listed = frozenset(entry.name for entry in entries if entry.name not in missing)
        return [
            {
                "type": "function",
                "function": {**entry.schema, **entry.fields_now(listed, self.availability.config), "name": entry.name},
            }
            for entry in entries
            if entry.name in listed
        ]

    def unavailable_tools(self) -> dict[str, Unavailable]:
        return self.availability.unavailable(self.entries())

    def is_toolset_available(self, toolset: str) -> bool:
        """Whether at least one tool of the set can be used."""
        entries = [entry for entry in self.entries() if entry.toolset == self._aliases.get(toolset, toolset)]
        return len(self.availability.unavailable(entries)) < len(entries)

    def check_toolset_requirements(self) -> dict[str, bool]:
        missing = self.unavailable_tools()
        return {toolset: any(name not in missing for name in names) for toolset, names in self.get_toolsets().items()}

    def get_available_toolsets(self) -> dict[str, JsonDict]:
        """Every toolset: whether it is `available`, its `tools`, and the environment variables that they name."""
        entries = sorted(self.entries(), key=lambda entry: entry.name)
        missing = self.availability.unavailable(entries)
        sets: dict[str, JsonDict] = {}
        for entry in entries:
            new: JsonDict = {"available": False, "tools": [], "description": "", "requirements": []}
            known = sets.setdefault(entry.toolset, new)
            known["available"] = known["available"] or entry.name not in missing
            known["description"] = known["description"] or entry.toolset_description
            known["tools"].append(entry.name)
            known["requirements"] += [name for name in entry.requires_env if name not in known["requirements"]]
        return {toolset: sets[toolset] for toolset in sorted(sets)}

    def get_toolset_requirements(self) -> dict[str, list[str]]:
        """The environment variables that each toolset's tools name."""
        named: dict[str, set[str]] = {}
        for entry in self.entries():
            named.setdefault(entry.toolset, set()).update(entry.requires_env)
        return {toolset: sorted(named[toolset]) for toolset in sorted(named)}

    def check_tool_availability(self, quiet: bool = False) -> tuple[list[str], list[JsonDict]]:
        """The toolsets that can be used now, and for each of the others its name, its tools and what they need."""
        available, others = [], []
        for toolset, known in self.get_available_toolsets().items():
            if known["available"]:
                available.append(toolset)
                continue
            others.append({"name": toolset, "env_vars": known["requirements"], "tools": known["tools"]})
            if not quiet:
                log.info("toolset %s is not available", toolset)
        return available, others
