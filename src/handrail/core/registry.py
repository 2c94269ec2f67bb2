"""The table of tools: who registers what, who may replace whom, which can be used now, and how one call reaches its handler.

This file is longer than the others on purpose. It is one object, with the many questions that the original's registry answers.
"""

import itertools
import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeVar, cast, overload

from ..base.lazy_module import named
from ..base.suggest import nearest
from ..errors import ToolUnavailable, UnknownTool
from ..protocols import Action
from ..types import JsonDict, Outcome, Resources, ToolCall, ToolContext, Unavailable
from .availability import Availability
from .entry import CheckFn, Contract, Example, Handler, ToolEntry, check_tool, dereferenced, function_of, new_entry
from .outcome import tool_error, tool_result

__all__ = ["ToolEntry", "ToolRegistry", "registry", "tool_error", "tool_result"]

log = logging.getLogger(__name__)

Function = TypeVar("Function", bound=Callable[..., Any])
# Runs the calls of a registry that no runtime was made for. By name, as the runtime is built on the registry.
DEFAULT_RUNNER = "handrail.runtime.dispatch:Runtime"
OnCollision = Literal["refuse", "replace"]
DEFAULT_TOOLSET = "custom"
DEFAULT_EMOJI = "⚡"
DEFAULT_MAX_RESULT_CHARS = 100_000


class Runner(Protocol):
    """Runs the calls that `dispatch` is asked for. A runtime is one."""

    def dispatch(self, name: str, args: JsonDict, context: JsonDict, /) -> Outcome: ...
    async def adispatch(self, name: str, args: JsonDict, context: JsonDict, /) -> Outcome: ...


class ToolRegistry:
    """Tools by name. Safe under threads: a reader works on what it saw when it began, and every answer belongs to the caller."""

    def __init__(self, *, on_collision: OnCollision = "refuse", availability: Availability | None = None) -> None:
        self.availability = availability or Availability()
        self._tools: dict[str, ToolEntry] = {}
        self._aliases: dict[str, str] = {}
        self._gone: set[str] = set()
        self._lock = threading.RLock()
        self._loader: Callable[[], object] | None = None
        self.on_collision: OnCollision = on_collision
        # Every change takes a number that was never used before, so what was worked out for one holds for no other.
        self._generations = itertools.count(1)
        self.generation = 0
        self.may_override: Callable[[str], bool] = lambda owner: False  # noqa: ARG005  by default no plugin may
        # Says which plugin's code calls, whatever the caller says. Without plugins nobody has to look.
        self.owner_of_caller: Callable[[], str] | None = None
        # Whoever may still bring a tool of that name, and waits for it; what it returns says why it cannot. None: everything
        # is here from the start.
        self.late: Callable[[str], str] | None = None
        self.runner: Runner | None = None
        self._overriding: set[str] = set()  # tools that were registered to take the place of another
        self._last_contract: tuple[object, object, Contract | None] = (None, None, None)

    def register(  # noqa: PLR0913  one keyword a documented property of a tool
        self,
        name: str,
        toolset: str,
        schema: JsonDict,
        handler: Handler | str,
        check_fn: CheckFn | str | None = None,
        requires_env: Iterable[str] | None = None,
        is_async: bool = False,
        description: str = "",
        emoji: str = "",
        max_result_size_chars: int | float | None = None,
        dynamic_schema_overrides: Callable[..., Mapping[str, Any]] | str | None = None,
        override: bool = False,
        *,
        read_only: bool = False,
        resources: Callable[..., Resources] | str | None = None,
        timeout: float | None = None,
        needs_agent: bool = False,
        owner: str = "",
        actions: Callable[[JsonDict, ToolContext], Sequence[Action]] | str | None = None,
        toolset_description: str = "",
        example: Example | None = None,
        waits: bool = False,
    ) -> bool:
        """Add a tool. False when another toolset holds that name and keeps it; RegistrationError when it is not a tool.

        Each function (`handler`, `check_fn`, `dynamic_schema_overrides`, `resources`, `actions`) may be given as text,
        "package.module:function": its module is imported when the function is first needed, so listing tools stays light.
        `toolset_description` describes the toolset in a line, once for all its tools; `example` shows a call (see `Example`).
        `waits`: its calls mostly wait for something outside, a command or a server, and take no place of those that work.
        """
        if self.owner_of_caller is not None:
            owner = self.owner_of_caller() or owner
        if type(handler) is str:
            handler = dereferenced(handler)
        try:
            parameters = schema["parameters"]
            described = description or schema["description"]
        except (KeyError, TypeError):
            parameters, described = function_of(name, schema, description)
        functions: tuple[Any, ...] = ()
        if check_fn or dynamic_schema_overrides or resources or actions or timeout is not None:
            functions = tuple(map(dereferenced, (check_fn, dynamic_schema_overrides, resources, actions)))
            check_fn, dynamic_schema_overrides, resources, actions = functions
        is_named = type(name) is str and name.isidentifier() and name.isascii() and len(name) <= 64
        is_plain = is_named and callable(handler) and toolset and type(toolset) is str and type(described) is str
        if functions or not is_plain:
            check_tool(name, handler, toolset, described, timeout, functions)
        fields = (
            name, toolset, described, self._contract(name, parameters), handler, check_fn,
            tuple(requires_env) if requires_env else (), is_async, emoji, max_result_size_chars, dynamic_schema_overrides,
            read_only, resources, timeout, needs_agent, owner, actions, toolset_description, example, waits,
        )  # fmt: skip
        entry = new_entry(ToolEntry, fields)
        # One atomic step for the usual case of a new name; only a collision needs the lock.
        if self._tools.setdefault(name, entry) is not entry and not self._replace(entry, override=override):
            return False
        if override:
            self._overriding.add(name)
        self.generation = next(self._generations)
        return True

    def _contract(self, name: str, parameters: object) -> Contract:
        """Families of tools share a schema: the same one, unchanged since, is not checked and compiled again."""
        last, known, contract = self._last_contract
        if contract is None or parameters is not last or parameters != known:
            contract = Contract(name, parameters)
            self._last_contract = (parameters, _twin(parameters), contract)
        return contract

    @overload
    def tool(self, function: Function, /) -> Function: ...

    @overload
    def tool(
        self,
        *,
        toolset: str = ...,
        name: str | None = ...,
        description: str = ...,
        check_fn: CheckFn | None = ...,
        requires_env: Iterable[str] | None = ...,
        emoji: str = ...,
        max_result_size_chars: int | float | None = ...,
        dynamic_schema_overrides: Callable[..., Mapping[str, Any]] | None = ...,
        override: bool = ...,
        read_only: bool = ...,
        resources: Callable[..., Resources] | None = ...,
        timeout: float | None = ...,
        needs_agent: bool = ...,
        actions: Callable[[JsonDict, ToolContext], Sequence[Action]] | None = ...,
        waits: bool = ...,
    ) -> Callable[[Function], Function]: ...

    def tool(self, *function: Any, **options: Any) -> Any:
        """Register a typed function: its signature and docstring become the schema. Takes what `register` takes.

        Bare, `@registry.tool` puts the function into the toolset "custom".
        """
        name, toolset = options.pop("name", None), options.pop("toolset", DEFAULT_TOOLSET)
        description = options.pop("description", "")

        def decorate(function: Function) -> Function:
            from .typed_functions import TypedTool  # imports pydantic

            typed = TypedTool(function)
            if not (description or typed.description):
                log.warning("tool %r has no docstring: a model cannot know what it is for", function.__name__)
            self.register(
                name=name or function.__name__,
                toolset=toolset,
                schema={"description": description or typed.description, "parameters": typed.parameters},
                handler=typed,
                is_async=typed.is_async,
                **options,
            )
            return function

        return decorate(*function) if function else decorate

    def adopt(self, entries: Iterable[ToolEntry]) -> None:
        """Take in the built-in tools, with the same outcome as if they had been here first: a tool of that name which another
        toolset had registered keeps its place only if it was registered with `override=True`."""
        with self._lock:
            for entry in entries:
                holder, override = self._tools.setdefault(entry.name, entry), entry.name in self._overriding
                if holder is not entry and not self._may_replace(entry, holder, override=override):
                    self._tools[entry.name] = entry
            self._changed()

    def deregister(self, name: str, *, owner: str = "") -> bool:
        """Take a tool out. False when there is none of that name, or it belongs to someone else."""
        if self.owner_of_caller is not None:
            owner = self.owner_of_caller() or owner
        with self._lock:
            entry = self._tools.get(name)
            if entry is None:
                return False
            if owner and entry.owner != owner and not self.may_override(owner):
                log.error("plugin %r may not deregister tool %r of toolset %r", owner, name, entry.toolset)
                return False
            del self._tools[name]
            self._gone.add(name)
            self._changed()
            if entry.toolset in self._aliases.values() and not self.get_tool_names_for_toolset(entry.toolset):
                self._aliases = {alias: target for alias, target in self._aliases.items() if target != entry.toolset}
        if entry.check_fn is not None:
            self.availability.forget(entry.check_fn)
        return True

    def restore(self, entries: Mapping[str, ToolEntry]) -> None:
        """Have exactly these tools again: what a module that failed half-way had changed is undone."""
        with self._lock:
            for name in [name for name in self._tools if name not in entries]:
                del self._tools[name]
            self._tools.update(entries)
            self._changed()

    def register_toolset_alias(self, alias: str, toolset: str) -> None:
        with self._lock:
            if (known := self._aliases.get(alias, toolset)) != toolset:
                log.warning("toolset alias %r now means %r instead of %r", alias, toolset, known)
            self._aliases[alias] = toolset
            self._changed()

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
        return self.get_toolsets().get(toolset, [])

    def get_toolset_for_tool(self, name: str) -> str | None:
        entry = self.get_entry(name)
        return entry.toolset if entry else None

    def get_tool_to_toolset_map(self) -> dict[str, str]:
        return {entry.name: entry.toolset for entry in self.entries()}

    def get_registered_toolset_names(self) -> list[str]:
        return list(self.get_toolsets())

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
        entry = self.get_entry(name)
        return entry.schema if entry else None

    def get_emoji(self, name: str, default: str = DEFAULT_EMOJI) -> str:
        entry = self._tools.get(name)
        return (entry.emoji if entry else "") or default

    def get_max_result_size(self, name: str, default: int | float | None = None) -> int | float:
        entry = self._tools.get(name)
        given = None if entry is None else entry.max_result_size_chars
        usual = DEFAULT_MAX_RESULT_CHARS if default is None else default
        return usual if given is None else given

    def get_definitions(self, names: Iterable[str] | None = None, quiet: bool = False) -> list[JsonDict]:
        """OpenAI definitions of the tools that can be used now, sorted by name."""
        wanted = self.get_all_tool_names() if names is None else sorted(set(names))
        entries = [entry for name in wanted if (entry := self._tools.get(name)) is not None]
        missing = self.availability.unavailable(entries)
        for name, why in () if quiet else missing.items():
            log.info("tool %s is not listed: %s", name, why)
        listed = frozenset(entry.name for entry in entries if entry.name not in missing)
        config, shown = self.availability.config, [entry for entry in entries if entry.name in listed]
        functions = ({**entry.schema, **entry.fields_now(listed, config), "name": entry.name} for entry in shown)
        return [{"type": "function", "function": function} for function in functions]

    def unavailable_tools(self) -> dict[str, Unavailable]:
        return self.availability.unavailable(self.entries())

    def is_toolset_available(self, toolset: str) -> bool:
        """Whether at least one tool of the set can be used."""
        entries = self.get_entries(self.get_tool_names_for_toolset(self._aliases.get(toolset, toolset)))
        return len(self.availability.unavailable(entries)) < len(entries)

    def check_toolset_requirements(self) -> dict[str, bool]:
        return {toolset: known["available"] for toolset, known in self.get_available_toolsets().items()}

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
        sets = self.get_available_toolsets()
        lacking = {toolset: known for toolset, known in sets.items() if not known["available"]}
        for toolset in () if quiet else lacking:
            log.info("toolset %s is not available", toolset)
        others = [
            {"name": name, "env_vars": each["requirements"], "tools": each["tools"]} for name, each in lacking.items()
        ]
        return [toolset for toolset in sets if toolset not in lacking], others

    def lookup(self, name: str) -> ToolEntry:
        """The entry of a tool that can be used now. Raises UnknownTool or ToolUnavailable."""
        self._load()
        entry = self._tools.get(name) if isinstance(name, str) else None
        if entry is None and self.late is not None:
            problem = self.late(str(name))
            entry = self._tools.get(str(name))
            if entry is None and problem:
                raise ToolUnavailable(f"{name} is unavailable: {problem}", reason=problem)
        if entry is None:
            raise unknown_tool(name, self._tools)
        if entry.check_fn is not None:
            why = self.availability.why_not(entry)
            if why is not None:
                raise ToolUnavailable(f"{name} is unavailable: {why}", reason=why.reason, fix=why.fix)
        return entry

    def ready(self, name: str) -> ToolEntry | None:
        """What `lookup` returns, or None where that may run a check or wait for a server, which may take seconds."""
        if self._loader is not None:
            self._load()
        entry = self._tools.get(name) if isinstance(name, str) else None
        if entry is not None and (entry.check_fn is None or self.availability.is_known_good(entry)):
            return entry
        is_known = self.late is None if entry is None else self.availability.is_fresh(entry)
        return self.lookup(name) if is_known else None

    def dispatch(self, name: str, args: JsonDict, **context: Any) -> Outcome:
        """Run one call without hooks. Whatever goes wrong comes back as a JSON error; KeyboardInterrupt and SystemExit pass.

        A tool that says what it is about to do needs a gate that looks at it first: the runtime's, or `gate` in the context.
        """
        return self._runner().dispatch(name, args, context)

    async def adispatch(self, name: str, args: JsonDict, **context: Any) -> Outcome:
        """`dispatch` for async callers: an async handler is awaited here, and cancelling the caller cancels it."""
        return await self._runner().adispatch(name, args, context)

    def _runner(self) -> Runner:
        if self.runner is None:
            self.runner = cast("Runner", named(DEFAULT_RUNNER)(self))
        return self.runner

    def _changed(self) -> None:
        self.generation = next(self._generations)

    def _replace(self, entry: ToolEntry, *, override: bool) -> bool:
        with self._lock:
            holder = self._tools.get(entry.name)
            if holder is not None and not self._may_replace(holder, entry, override=override):
                return False
            self._tools[entry.name] = entry
            return True

    def _may_replace(self, holder: ToolEntry, entry: ToolEntry, *, override: bool) -> bool:
        both = f"tool {entry.name!r} of toolset {entry.toolset!r} and the one of toolset {holder.toolset!r}"
        if entry.owner and entry.owner != holder.owner and not self.may_override(entry.owner):
            log.error("%s collide; plugin %r may not override, that of %r stays", both, entry.owner, holder.toolset)
            return False
        if entry.toolset == holder.toolset:
            return True
        if entry.toolset.startswith("mcp-") and holder.toolset.startswith("mcp-"):
            log.debug("%s share a name; the later server's is used", both)
            return True
        if override:
            log.info("%s share a name; overridden on request", both)
            return True
        if self.on_collision == "replace":
            log.warning("%s share a name; the later one wins", both)
            return True
        log.error("%s collide; that of %r stays (override=True replaces it)", both, holder.toolset)
        return False


def unknown_tool(name: object, known: Iterable[str]) -> UnknownTool:
    """The error for a name that is not among those."""
    name = str(name)[:100]
    near = nearest(name, known)
    if near is None:
        return UnknownTool(f"Unknown tool: {name}")
    return UnknownTool(f"Unknown tool: {name}; did you mean {near}?", did_you_mean=near)


def _twin(value: Any) -> Any:
    """A copy that shares the strings: comparing with it is then mostly comparing addresses."""
    if isinstance(value, dict):
        return {key: _twin(item) for key, item in value.items()}
    return [_twin(item) for item in value] if isinstance(value, list) else value


registry = ToolRegistry()
