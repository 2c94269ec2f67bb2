"""Load the plugins that may be loaded, and keep what became of each."""

import ast
import contextlib
import importlib
import logging
import os
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, NamedTuple

from ..base.workers import is_interrupt, run_bounded
from ..config.paths import Found, Source
from ..config.trust import Trust
from ..core.registry import ToolEntry, ToolRegistry
from ..errors import CallTimeout, RegistrationError
from ..settings.sections import PluginConfig
from .api import Contributions, PluginApi
from .hook_manager import HookManager
from .hook_specs import HookOptions, marked_hooks
from .plugin_files import PluginFiles, forget_plugin, import_plugin, read_package, read_plugin, serve_from_memory

log = logging.getLogger(__name__)

TRUST_KIND = "plugin"
MANIFEST = "plugin.yaml"


class State(Enum):
    LOADED = "loaded"
    DISABLED = "disabled"
    UNTRUSTED = "untrusted"
    UNAVAILABLE = "unavailable"  # an environment variable that it needs is not set
    SHADOWED = "shadowed"  # an earlier source has a plugin with that name
    FAILED = "failed"


class Manifest(NamedTuple):
    """For display, except `requires_env`, variables without which it is not loaded, and plugins that are loaded before it."""

    name: str = ""
    version: str = ""
    description: str = ""
    requires_env: tuple[str, ...] = ()
    provides: tuple[str, ...] = ()
    requires_plugins: tuple[str, ...] = ()


@dataclass(slots=True)
class Plugin:
    """One plugin that was found. `reason` says why it is not loaded, and what to do."""

    name: str
    source: Source
    place: str
    manifest: Manifest = field(default_factory=Manifest)
    state: State = State.FAILED
    reason: str = ""
    provides: dict[str, list[str]] = field(default_factory=dict)


class Plugins:
    """All plugins of one registry and one hook manager."""

    def __init__(
        self,
        registry: ToolRegistry,
        hooks: HookManager,
        settings: Mapping[str, PluginConfig],
        *,
        trust: Trust | None = None,
        load_seconds: float = 20.0,
    ) -> None:
        # Who hands over plugins without it vouches for them; a project's always need to be trusted.
        self._trust, self._trusts_given = trust or Trust(), trust is None
        self.contributions = Contributions(data=self._trust.path.parent / "plugin-data")
        self._queue: list[Found] = []
        self.found: list[Plugin] = []
        self._registry, self._hooks, self._settings = registry, hooks, settings
        self._load_seconds = load_seconds
        self._authorship = Authorship()
        self._replaced: dict[str, ToolEntry] = {}
        registry.owner_of_caller = self._authorship.owner_of_caller
        registry.may_override = lambda plugin: plugin in settings and settings[plugin].allow_override

    def load(self, everything: Iterable[Found]) -> list[Plugin]:
        """Load what may be loaded, in this order. A plugin that fails is reported and does not affect the others."""
        self._queue = list(everything)
        while self._queue:
            self._load_next()
        return self.found

    def _load_next(self, place: int = 0) -> None:
        found = self._queue.pop(place)
        plugin = Plugin(found.name, found.source, found.place)
        self.found.append(plugin)
        try:
            self._load(plugin, found)
        except BaseException as error:
            if is_interrupt(error):
                raise
            plugin.state = State.FAILED
            plugin.reason = str(error) if isinstance(error, RegistrationError) else f"{type(error).__name__}: {error}"
            log.warning("plugin %s could not be loaded: %s", plugin.name, plugin.reason)

    def _load_required(self, plugin: Plugin) -> None:
        """First those that it builds on. One that is missing is reported, and it is loaded all the same."""
        for name in plugin.manifest.requires_plugins:
            waiting = [found.name for found in self._queue]
            if name in waiting:
                self._load_next(waiting.index(name))
            if name not in self.contributions.loaded:
                log.warning("plugin %s requires the plugin %s, which is not loaded", plugin.name, name)

    def unload(self) -> None:
        """Remove everything that the plugins added; a tool that one of them replaced is restored."""
        for plugin in self.found:
            self._hooks.unregister_plugin(plugin.name)
        names = {plugin.name for plugin in self.found}
        kept = {entry.name: entry for entry in self._registry.entries() if entry.owner not in names}
        self._registry.restore({**self._replaced, **kept})
        self._registry.owner_of_caller = None
        self.found, self.contributions = [], Contributions()

    def get(self, name: str) -> Plugin | None:
        return next((plugin for plugin in self.found if plugin.name == name), None)

    @property
    def unloaded(self) -> tuple[str, ...]:
        """Those whose contributions are missing until somebody trusts, enables or corrects them."""
        return tuple(each.name for each in self.found if each.state not in (State.LOADED, State.SHADOWED))

    @property
    def untrusted(self) -> list[str]:
        """The project's own plugins that wait until you trust them as they are now."""
        return [each.name for each in self.found if each.state is State.UNTRUSTED and each.source is Source.PROJECT]

    def _load(self, plugin: Plugin, found: Found) -> None:
        earlier = self.get(plugin.name)
        if earlier is not None and earlier is not plugin:
            plugin.state = State.SHADOWED
            plugin.reason = f"the {earlier.source.value} has one of the same name: {earlier.place}"
            return
        files = plugin_content(found)
        if found.source is not Source.PIP:
            plugin.manifest = read_manifest(files)
        settings = self._settings.get(plugin.name)
        plugin.state, plugin.reason = self._verdict(plugin, files, settings)
        if plugin.state is not State.LOADED:
            if plugin.state is State.UNTRUSTED and plugin.source is not Source.PROJECT:
                log.warning("plugin %s is not loaded: %s", plugin.name, plugin.reason)
            return
        self._load_required(plugin)
        own = settings.settings if settings else None
        api = PluginApi(plugin.name, self._registry, self._hooks, self.contributions, own, files.root)
        before = {entry.name: entry for entry in self._registry.entries()}
        try:
            self._run_bounded(plugin, api, files)
        except BaseException:
            self._roll_back(plugin, api, before)
            raise
        owned = sorted(entry.name for entry in self._registry.entries() if entry.owner == plugin.name)
        self._replaced.update({name: before[name] for name in owned if name in before})
        plugin.provides = {**api.provided, **({"tools": owned} if owned else {})}
        self.contributions.loaded.add(plugin.name)

    def _run_bounded(self, plugin: Plugin, api: PluginApi, files: PluginFiles) -> None:
        """Import and start it on a worker, so that one that hangs is named. What it adds after its time is over is not taken."""

        def work() -> None:
            with self._authorship.loading(plugin.name):
                self._begin(api, self._imported(plugin, files))

        try:
            run_bounded(work, timeout=self._load_seconds)
        except CallTimeout:
            self._authorship.refused.add(plugin.name)
            api.close()
            raise RegistrationError(
                f"it did not load within {self._load_seconds:g} s (it waits for something at its import); "
                f"`handrail plugins disable {plugin.name}` switches it off"
            ) from None

    def _verdict(self, plugin: Plugin, files: PluginFiles, settings: PluginConfig | None) -> tuple[State, str]:
        if settings is not None and not settings.enabled:
            return State.DISABLED, f"switched off; `handrail plugins enable {plugin.name}`"
        if plugin.source is Source.PROJECT or not self._trusts_given:
            found = (TRUST_KIND, plugin.place, files.digest)
            if not self._trust.is_trusted(*found):
                changed = "it has changed since it was trusted; " if self._trust.has_changed(*found) else ""
                return State.UNTRUSTED, f"{changed}look at it, then `handrail plugins trust {plugin.name}`"
        missing = [name for name in plugin.manifest.requires_env if not os.environ.get(name)]
        if missing:
            return State.UNAVAILABLE, f"set {', '.join(missing)} in the environment"
        return State.LOADED, ""

    def _imported(self, plugin: Plugin, files: PluginFiles) -> Any:
        self._authorship.owners[files.module_name] = plugin.name
        if plugin.source is not Source.PIP:
            return import_plugin(files)
        serve_from_memory(files)
        module_name, _, attribute = plugin.place.partition(":")
        target: Any = importlib.import_module(module_name)
        plugin.manifest = _manifest_of_package(target)
        for part in attribute.split(".") if attribute else ():
            target = getattr(target, part)
        return target

    def _begin(self, api: PluginApi, target: Any) -> None:
        """Start a module or object with hook functions or `register(api)`, or a function that is one."""
        for name, function, options in marked_hooks(target, named=isinstance(target, ModuleType)):
            api.hook(name, function, **{each: getattr(options, each) for each in HookOptions.__slots__})
        register = getattr(target, "register", target if not isinstance(target, ModuleType) else None)
        if callable(register):
            register(api)

    def _roll_back(self, plugin: Plugin, api: PluginApi, before: Mapping[str, Any]) -> None:
        """Remove what a plugin had added before it failed."""
        self._registry.restore(before)
        self._hooks.unregister_plugin(plugin.name)
        for kind in api.provided.keys() - {"tools", "hooks", "middleware"}:
            for name in api.provided[kind]:
                getattr(self.contributions, kind).pop(name, None)
        forget_plugin(plugin.name)


def plugin_content(found: Found) -> PluginFiles:
    """A plugin's files as they are now. Raises RegistrationError for what cannot be a plugin."""
    return read_package(found.place) if found.source is Source.PIP else read_plugin(Path(found.place))


def trust_plugin(found: Found, trust: Trust | None = None) -> PluginFiles:
    """Trust a plugin as it is now. Raises RegistrationError if it is invalid, ConfigError if that cannot be stored."""
    files = plugin_content(found)
    (trust or Trust()).trust(TRUST_KIND, found.place, files.digest)
    return files


def _manifest_of_package(module: ModuleType) -> Manifest:
    """pip's metadata of the package that a module belongs to."""
    from importlib import metadata

    top = module.__name__.partition(".")[0]
    try:
        name = metadata.packages_distributions().get(top, [top])[0]
        about = metadata.metadata(name).json
    except (metadata.PackageNotFoundError, IndexError):
        return Manifest()
    return Manifest(version=str(about.get("version", "")), description=str(about.get("summary", "")))


def read_manifest(files: PluginFiles) -> Manifest:
    """Raises RegistrationError for a manifest that cannot be understood."""
    source = files.content["__init__.py"]
    if MANIFEST not in files.content:
        return Manifest(name=files.name, description=_first_line(source))
    found = _parsed(files)
    if unknown := sorted(map(str, found.keys() - set(Manifest._fields))):  # one of them may be misspelt
        log.info("plugin %s: %s has keys without a meaning here: %s", files.name, MANIFEST, ", ".join(unknown))
    name, own_name = (str(each).replace("-", "_").lower() for each in (found.get("name", files.name), files.name))
    if name != own_name:
        other = f"{MANIFEST} calls it {found['name']!r}"
        raise RegistrationError(f"plugin {files.name!r}: {other}; the folder's name must be the same")
    about = str(found.get("version", "")), str(found.get("description", "")) or _first_line(source)
    keys = ("requires_env", "provides", "provides_tools", "requires_plugins")
    variables, provides, tools, plugins = (_words(files.name, found, key) for key in keys)
    return Manifest(files.name, *about, variables, (*provides, *tools), plugins)


def _parsed(files: PluginFiles) -> dict[str, Any]:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        found = YAML(typ="safe", pure=True).load(files.content[MANIFEST].decode())
    except (YAMLError, UnicodeDecodeError) as error:
        raise RegistrationError(f"plugin {files.name!r}: {MANIFEST} cannot be read: {error}") from None
    if found is not None and not isinstance(found, dict):
        raise RegistrationError(f"plugin {files.name!r}: {MANIFEST} must be a mapping, such as `version: 1.0`")
    return found or {}


def _words(name: str, found: dict[str, Any], key: str) -> tuple[str, ...]:
    words = found.get(key) or []
    if isinstance(words, list):  # a variable may come with a description: {name: KEY, description: ...}
        words = [word.get("name", word.get("id")) if isinstance(word, dict) else word for word in words]
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise RegistrationError(f"plugin {name!r}: {key} in {MANIFEST} must be a list of names")
    return tuple(words)


def _first_line(source: bytes) -> str:
    try:
        return (ast.get_docstring(ast.parse(source)) or "").partition("\n")[0]
    except (SyntaxError, ValueError, RecursionError):
        return ""  # importing it says what is wrong


NOBODY = "?"  # an owner with no rights
# These call what they are given: they say nothing about who gave it.
_GO_BETWEENS = frozenset({__name__, "handrail.core.registry", "handrail.base.workers", "handrail.base.loops"})


class Authorship:
    """Knows which modules belong to which plugin, and so which plugin's code is calling. A package includes all of its modules.

    A permission belongs to a plugin, however it calls: through a `functools.partial`, an object with `__call__` or a thread of
    its own, its code is on the stack. Where nothing on the stack is known, the caller has no permissions.

    This keeps plugins from replacing a tool by accident or by trick. It is not a security boundary: a plugin is Python in this
    process and can change anything in it. The boundary is which plugins are loaded at all.
    """

    def __init__(self) -> None:
        self.owners: dict[str, str] = {}  # the plugins, by their modules
        self.refused: set[str] = set()  # plugins from whose thread nothing more is taken
        self._thread = threading.local()

    @contextlib.contextmanager
    def loading(self, plugin: str) -> Iterator[None]:
        """While a plugin is imported, everything in this thread counts as its code."""
        before = getattr(self._thread, "plugin", "")
        self._thread.plugin = plugin
        try:
            yield
        finally:
            self._thread.plugin = before

    def owner_of_caller(self) -> str:
        """The plugin whose code called, "" for code outside plugins, `NOBODY` when the stack does not tell."""
        loading: str = getattr(self._thread, "plugin", "")
        if loading in self.refused:
            raise RegistrationError(f"plugin {loading!r} took too long to load, and is switched off in this process")
        if loading or not self.owners:
            return loading
        known = False
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            module = frame.f_globals.get("__name__")
            module = module if isinstance(module, str) else ""
            if owner := self._owner(module):
                return owner
            is_go_between = module in _GO_BETWEENS or module.partition(".")[0] in sys.stdlib_module_names
            known = known or bool(module and not is_go_between)
            frame = frame.f_back
        return "" if known else NOBODY

    def _owner(self, module: str) -> str:
        while module and module not in self.owners:
            module = module.rpartition(".")[0]
        return self.owners.get(module, "")
