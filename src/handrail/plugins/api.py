"""What a plugin is given to add itself: the argument of its `register(api)`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from ..errors import RegistrationError

if TYPE_CHECKING:
    from ..core.registry import ToolRegistry
    from .hook_manager import HookManager

Function = TypeVar("Function", bound=Callable[..., Any])


class PluginToolset(NamedTuple):
    """A bundle of tools that a plugin brings."""

    description: str
    tools: tuple[str, ...] = ()
    includes: tuple[str, ...] = ()


@dataclass(slots=True)
class Contributions:
    """What the plugins brought beside tools and hooks, for those who use it. Each is by name, and the first keeps it."""

    toolsets: dict[str, PluginToolset] = field(default_factory=dict)
    environments: dict[str, Any] = field(default_factory=dict)
    approval_rules: dict[str, Any] = field(default_factory=dict)
    approvers: dict[str, Any] = field(default_factory=dict)
    commands: dict[str, Callable[[Any], None]] = field(default_factory=dict)
    model_providers: dict[str, Any] = field(default_factory=dict)


class PluginApi:
    """Adds things in the name of one plugin. `settings` is what the user wrote under `plugins.NAME.settings`."""

    def __init__(
        self,
        plugin: str,
        registry: ToolRegistry,
        hooks: HookManager,
        contributions: Contributions,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.plugin = plugin
        self.settings = dict(settings or {})
        self.provided: dict[str, list[str]] = {}
        self._registry, self._hooks, self._contributions = registry, hooks, contributions

    def register_tool(self, name: str, **properties: Any) -> bool:
        """A tool, with the arguments of `registry.register`. False when another one keeps the name."""
        properties["owner"] = self.plugin
        added = self._registry.register(name, **properties)
        if added:
            self._note("tools", name)
        return added

    def tool(self, *, toolset: str, **properties: Any) -> Callable[[Function], Function]:
        """The same for a typed function, as a decorator."""
        properties["owner"] = self.plugin

        def decorate(function: Function) -> Function:
            self._registry.tool(toolset=toolset, **properties)(function)
            self._note("tools", properties.get("name") or function.__name__)
            return function

        return decorate

    def deregister_tool(self, name: str) -> bool:
        """Take a tool away: the plugin's own, or any other if the user lets it."""
        return self._registry.deregister(name, owner=self.plugin)

    def hook(self, name: str, function: Callable[..., Any], **options: Any) -> None:
        """A function for one hook; the options are those of `@hookimpl`."""
        self._hooks.register_hook(name, function, plugin=self.plugin, **options)
        self._note("hooks", name)

    def toolset(
        self, name: str, *, description: str, tools: tuple[str, ...] = (), includes: tuple[str, ...] = ()
    ) -> None:
        """A bundle of tools under a name."""
        self._contribute("toolsets", name, PluginToolset(description, tuple(tools), tuple(includes)))

    def environment(self, name: str, backend: Any) -> None:
        """A place where commands can run: a class with `name` and `from_settings`, as a backend of our own has."""
        if getattr(backend, "name", None) != name:
            raise RegistrationError(f"plugin {self.plugin!r}: the environment's class must say name = {name!r}")
        self._contribute("environments", name, backend)

    def approval_rule(self, rule: Any) -> None:
        """A `handrail.judge.Rule`, with its examples. It can ask for more, never for less."""
        from ..judge import assess
        from ..judge.rules.custom import checked

        self._contribute("approval_rules", checked(rule, assess=assess).id, rule)

    def approver(self, name: str, approver: Any) -> None:
        """Someone who can be asked, to be named in `approvals.approver`."""
        self._contribute("approvers", name, approver)

    def command(self, name: str, add_to: Callable[[Any], None]) -> None:
        """A command of `handrail`: a function that is given the typer application and adds it."""
        self._contribute("commands", name, add_to)

    def model_provider(self, name: str, provider: Any) -> None:
        """A way to reach models, to be named in `model.provider`: called with a model's name, base_url, api_key and
        context_tokens, it gives the model."""
        self._contribute("model_providers", name, provider)

    def _contribute(self, kind: str, name: str, value: Any) -> None:
        table: dict[str, Any] = getattr(self._contributions, kind)
        if name in table:
            raise RegistrationError(f"plugin {self.plugin!r}: another plugin has {kind.replace('_', ' ')} {name!r}")
        table[name] = value
        self._note(kind, name)

    def _note(self, kind: str, name: str) -> None:
        self.provided.setdefault(kind, []).append(name)
