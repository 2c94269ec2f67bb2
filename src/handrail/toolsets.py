"""Named bundles of tools.

A leaf exists because tools name it when they register. A composite includes other sets, and nothing lists a leaf's
tools again: a new tool is in every bundle that includes its toolset.
"""

import logging
import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from importlib import import_module
from typing import NamedTuple

from .base.suggest import did_you_mean
from .core.registry import ToolEntry, ToolRegistry
from .errors import UnknownToolset
from .settings.sections import ToolsetConfig
from .types import JsonDict

log = logging.getLogger(__name__)
# Where the default runtime is. By name, as it is built on the toolsets.
_DEFAULT = "handrail.model_tools"


class Toolset(NamedTuple):
    """A bundle of our own. `only` keeps out what does not belong, whatever the included sets gain later."""

    description: str
    includes: Sequence[str] = ()
    tools: tuple[str, ...] = ()
    only: Callable[[ToolEntry], bool] | None = None


SetOfTools = Toolset | ToolsetConfig
_CORE = (
    "file results terminal web browser vision image_gen tts skills todo memory session_search clarify code_execution "
    "delegation cronjob messaging moa homeassistant tool_search"
)
_UNATTENDED = _CORE.replace(" clarify", "")
# The original's chat platforms. Some of them have no adapter here; their presets exist so that its configurations work.
_CHATS = (
    "telegram discord slack matrix email whatsapp signal bluebubbles homeassistant mattermost dingtalk feishu weixin qqbot "
    "wecom wecom-callback yuanbao sms"
).split()

COMPOSITES: dict[str, Toolset] = {
    "coding": Toolset(
        "what a coding agent needs",
        "file results terminal web skills todo memory session_search clarify code_execution delegation tool_search".split(),
        only=lambda entry: entry.name != "skill_manage",  # its text is long, and writing skills is no coding
    ),
    "safe": Toolset(
        "nothing that runs or writes",
        "file results web vision skills session_search clarify".split(),
        only=lambda entry: entry.read_only,
    ),
    "debugging": Toolset("look into a problem on this machine", "file results terminal web".split()),
    "research": Toolset(
        "find things out and write them down", "web browser vision file results todo memory session_search".split()
    ),
    "handrail-cli": Toolset("a person at a terminal", _CORE.split()),
    "handrail-web": Toolset("the web console", _CORE.split()),
    **{f"handrail-{name}": Toolset(f"a chat on {name.title()}", _CORE.split()) for name in _CHATS},
    "handrail-gateway": Toolset("every chat platform", [f"handrail-{name}" for name in _CHATS]),
    "handrail-webhook": Toolset("untrusted input: nothing that touches the machine", "web vision clarify".split()),
    "handrail-cron": Toolset("scheduled runs, with nobody to ask", _UNATTENDED.split()),
    "handrail-acp": Toolset("an editor that drives the agent", "coding browser vision skills".split()),
    "handrail-mcp": Toolset("MCP clients", "file results terminal web browser skills code_execution".split()),
    "handrail-api-server": Toolset("programs that call the HTTP API", _UNATTENDED.split()),
}

# The leaves that bundles include. One without tools is empty, not unknown.
_LEAVES = frozenset(part for bundle in COMPOSITES.values() for part in bundle.includes)
EVERYTHING = ("all", "*")
# Old names that are not simply the new one with `_tools` behind it.
_OLD_NAMES = {"image_tools": "image_gen", "code_tools": "code_execution", "delegate_tools": "delegation"}


class Toolsets:
    """The bundles of one registry: its leaves, the built-in composites, and the user's own sets."""

    def __init__(self, registry: ToolRegistry, custom: Mapping[str, SetOfTools] | None = None) -> None:
        self._registry = registry
        self.custom: Mapping[str, SetOfTools] = custom or {}
        self.expected: frozenset[str] = frozenset()  # sets whose tools come later, as those of an MCP server
        self.unloaded: tuple[str, ...] = ()  # plugins: an unknown set or tool may be one of theirs, so it is empty
        self._warned: set[str] = set()
        self._leaves: tuple[int, dict[str, list[str]]] = (-1, {})

    def names(self) -> list[str]:
        return sorted({*_LEAVES, *COMPOSITES, *self.custom, *self.expected, *self._registered()})

    def find(self, name: str) -> str | None:
        """The set that a name stands for: itself, an alias, an old name. None if there is no such set."""
        if name in EVERYTHING:
            return EVERYTHING[0]
        aliases = self._registry.get_registered_toolset_aliases()
        old = (_OLD_NAMES.get(name), name.removesuffix("_tools"), re.sub("^hermes-", "handrail-", name))
        candidates = (name, aliases.get(name), *old, f"mcp-{name}")
        return next((each for each in candidates if each is not None and self._is_known(each)), None)

    def canonical(self, name: str) -> str:
        """The set that a name stands for. Raises UnknownToolset."""
        found = self.find(name)
        if found is None:
            known = [*self.names(), *self._registry.get_registered_toolset_aliases()]
            self._refuse(f"unknown toolset {name!r}", did_you_mean(name, known))
        return found or name

    def resolve(self, name: str) -> list[str]:
        """The sorted names of a set's tools."""
        return sorted(self._collect(name))

    def select(self, enabled: Iterable[str] | None, disabled: Iterable[str] = ()) -> list[str]:
        """The sorted tools of the enabled sets (None: of all) without those of the disabled ones."""
        chosen = set(self._registry.get_all_tool_names() if enabled is None else ())
        for name in enabled or ():
            chosen |= self._collect(name)
        for name in disabled:
            chosen -= self._collect(name)
        return sorted(chosen)

    def info(self, name: str) -> JsonDict:
        canonical, tools = self.canonical(name), self.resolve(name)
        bundle = self._bundle(canonical)
        about = bundle.description if bundle else self._registry.get_toolset_description(canonical)
        found = {"name": canonical, "description": about or f"tools of {canonical}"}
        includes = list(bundle.includes) if bundle else []
        return {**found, "includes": includes, "tools": tools, "composite": bundle is not None}

    def _registered(self) -> dict[str, list[str]]:
        """The leaves that tools name, made anew when the registry has changed."""
        generation, leaves = self._registry.generation, self._leaves
        if leaves[0] != generation:
            leaves = self._leaves = (generation, self._registry.get_toolsets())
        return leaves[1]

    def _is_known(self, name: str) -> bool:
        sets: tuple[Container[str], ...] = (_LEAVES, COMPOSITES, self.custom, self.expected, self._registered())
        return any(name in each for each in sets)

    def _bundle(self, name: str) -> SetOfTools | None:
        return self.custom.get(name) or COMPOSITES.get(name)

    def _collect(self, name: str) -> set[str]:
        """Every set that can be reached, filled from its own tools and what it includes until nothing changes any more:
        cycles and diamonds then need no care."""
        start = self.canonical(name)
        own: dict[str, set[str]] = {}
        includes: dict[str, list[str]] = {}
        waiting = [start]
        while waiting:
            reached = waiting.pop()
            if reached in own:
                continue
            bundle = self._bundle(reached)
            own[reached] = self.own_tools(reached)
            includes[reached] = [self.canonical(part) for part in bundle.includes] if bundle else []
            waiting += includes[reached]
        filled = {reached: self._kept(reached, tools) for reached, tools in own.items()}
        changed = True
        while changed:
            changed = False
            for reached, parts in includes.items():
                tools = self._kept(reached, own[reached].union(*(filled[part] for part in parts)))
                changed = changed or tools != filled[reached]
                filled[reached] = tools
        return filled[start]

    def own_tools(self, name: str) -> set[str]:
        """The tools of a set itself, without those of the sets that it includes."""
        bundle = self._bundle(name)
        if name == EVERYTHING[0]:
            return set(self._registry.get_all_tool_names())
        tools = set(self._registered().get(name, ()))
        for tool in bundle.tools if bundle else ():
            if self._registry.get_entry(tool) is not None:
                tools.add(tool)
                continue
            hint = did_you_mean(tool, self._registry.get_all_tool_names())
            self._refuse(f"toolset {name!r} lists {tool!r}, which is no tool", hint)
        return tools

    def _kept(self, name: str, tools: set[str]) -> set[str]:
        bundle = self._bundle(name)
        only = bundle.only if isinstance(bundle, Toolset) else None
        return tools if only is None else {entry.name for entry in self._registry.get_entries(tools) if only(entry)}

    def _refuse(self, what: str, hint: str) -> None:
        """Only warns while a plugin waits for its trust or a correction: that must not stop every command."""
        if not self.unloaded:
            raise UnknownToolset(f"{what}; {hint}")
        if what not in self._warned:
            self._warned.add(what)
            log.warning("%s; it may be of a plugin that is not loaded: %s", what, ", ".join(self.unloaded))


def as_names(toolsets: Iterable[str] | str) -> list[str]:
    """One name may be given instead of a list."""
    return [toolsets] if isinstance(toolsets, str) else list(toolsets)


def resolve_toolset(name: str) -> list[str]:
    """The sorted tool names of a set of the default runtime. Raises UnknownToolset."""
    return _default().resolve(name)


def resolve_multiple_toolsets(names: Iterable[str]) -> list[str]:
    """The sorted tool names of all these sets together. Raises UnknownToolset."""
    return _default().select(names)


def validate_toolset(name: str) -> bool:
    return _default().find(name) is not None


def get_toolset_names() -> list[str]:
    return _default().names()


def get_toolset(name: str) -> JsonDict | None:
    """Its description, its own tools and the sets that it includes; None if there is no such set."""
    info = get_toolset_info(name)
    return info and {"description": info["description"], "tools": info["direct_tools"], "includes": info["includes"]}


def get_all_toolsets() -> dict[str, JsonDict]:
    return {name: found for name in get_toolset_names() if (found := get_toolset(name)) is not None}


def get_toolset_info(name: str) -> JsonDict | None:
    """What there is to know of a set; None if there is no such set."""
    sets = _default()
    if sets.find(name) is None:
        return None
    info = sets.info(name)
    return {
        "name": info["name"],
        "description": info["description"],
        "direct_tools": sorted(sets.own_tools(info["name"])),
        "includes": info["includes"],
        "resolved_tools": info["tools"],
        "tool_count": len(info["tools"]),
        "is_composite": bool(info["includes"]),
    }


def create_custom_toolset(
    name: str, description: str, tools: Iterable[str] | None = None, includes: Iterable[str] | None = None
) -> None:
    """Add a set to the default runtime, or replace one, until it is closed."""
    sets = _default()
    sets.custom = {**sets.custom, name: Toolset(description, tuple(includes or ()), tuple(tools or ()))}


def _default() -> Toolsets:
    toolsets: Toolsets = import_module(_DEFAULT).default().toolsets
    return toolsets
