"""Look at everything that can be wrong with an installation, without needing any of it to be right."""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from .. import __version__
from ..core.registry import ToolRegistry
from ..errors import HandrailError

if TYPE_CHECKING:
    from ..config import Config


class Health(Enum):
    """`MISSING` is something optional that is not there; only `BROKEN` is a fault."""

    OK = "ok"
    MISSING = "missing"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    what: str
    health: Health
    detail: str
    fix: str = ""


def examine() -> Iterator[Finding]:
    """Everything, from the ground up."""
    yield Finding("python", Health.OK, f"{platform.python_version()} ({sys.executable})")
    yield Finding("handrail", Health.OK, f"{__version__} ({Path(__file__).parent.parent})")
    config, finding = _config()
    yield finding
    yield _state_folder()
    # A table of its own: looking must not change the default one.
    registry = ToolRegistry()
    registry.availability.config = config
    yield from _tools(registry)
    yield from _plugins(config, registry)
    yield from _toolsets(config, registry)
    yield _gate(config)
    yield _model(config)
    yield _ripgrep()


def _config() -> tuple[Config, Finding]:
    """The configuration, or the defaults in place of one that cannot be used."""
    from ..config import Config, ConfigError, config_path, load_config

    path = config_path()
    try:
        config = load_config()
    except ConfigError as error:
        fix = "correct it there, or with `handrail config edit`"
        return Config(), Finding("config", Health.BROKEN, str(error), fix)
    return config, Finding("config", Health.OK, f"{path}" if path.exists() else f"{path} (not there: defaults hold)")


def _state_folder() -> Finding:
    from ..config import state_dir

    folder = state_dir()
    nearest = next(path for path in (folder, *folder.parents) if os.path.exists(path))
    if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
        what = "is not a folder" if not nearest.is_dir() else "cannot be written"
        fix = "correct that, or put everything elsewhere with HANDRAIL_HOME"
        return Finding("state folder", Health.BROKEN, f"{folder}: {nearest} {what}", fix)
    return Finding("state folder", Health.OK, f"{folder}" if folder.exists() else f"{folder} (made when needed)")


def _tools(registry: ToolRegistry) -> Iterator[Finding]:
    from ..core.discovery import builtin_tools, scan_builtin

    with _quiet("handrail.core.discovery"):  # what it would warn of is said here
        failed = scan_builtin().failed
    for module, reason in failed.items():
        fix = "install what it lacks, or reinstall handrail"
        yield Finding(f"module {module}", Health.BROKEN, f"cannot be imported: {reason}", fix)
    registry.adopt(builtin_tools())
    missing = registry.unavailable_tools()
    usable = len(registry.entries()) - len(missing)
    yield Finding("tools", Health.OK, f"{usable} can be used now, {len(missing)} cannot")
    for name, why in sorted(missing.items()):
        yield Finding(f"tool {name}", Health.MISSING, why.reason, why.fix)


def _plugins(config: Config, registry: ToolRegistry) -> Iterator[Finding]:
    from ..plugins.sources import find_plugins

    found = list(find_plugins())
    if not found:
        return
    from ..plugins.hook_manager import HookManager
    from ..plugins.loader import Plugins, State

    with _quiet("handrail.plugins.loader"):  # what it would warn of is said here
        loaded = Plugins(registry, HookManager(), config.plugins).load(found)
    for plugin in loaded:
        if plugin.state is State.LOADED:
            yield Finding(f"plugin {plugin.name}", Health.OK, f"{plugin.source.value}, {plugin.place}")
        elif plugin.state is State.FAILED:
            yield Finding(f"plugin {plugin.name}", Health.BROKEN, plugin.reason, "correct it, or disable the plugin")
        else:
            yield Finding(f"plugin {plugin.name}", Health.MISSING, plugin.state.value, plugin.reason)


def _toolsets(config: Config, registry: ToolRegistry) -> Iterator[Finding]:
    from ..toolsets import Toolsets

    toolsets = Toolsets(registry, config.toolsets)
    with_tools = 0
    for name in toolsets.names():
        try:
            with_tools += bool(toolsets.resolve(name))
        except HandrailError as error:
            fix = "correct it in config.yaml, with `handrail config edit`"
            yield Finding(f"toolset {name}", Health.BROKEN, str(error), fix)
    yield Finding("toolsets", Health.OK, f"{with_tools} with tools, {len(toolsets.names()) - with_tools} without")
    try:
        toolsets.select(config.tools.enabled_toolsets, config.tools.disabled_toolsets)
    except HandrailError as error:
        fix = "correct it with `handrail config set` or `unset`"
        yield Finding("tools.enabled_toolsets, .disabled_toolsets", Health.BROKEN, str(error), fix)


def _model(config: Config) -> Finding:
    """Whom an agent would ask. Nobody is asked here: `handrail model test` does."""
    from ..agent.models.model_selection import HOW_TO, connect, find

    choice = find(config.model)
    if choice is None:
        return Finding("model", Health.MISSING, "none is configured, and no server for local models runs here", HOW_TO)
    try:
        connect(choice, config.model)
    except HandrailError as error:
        return Finding("model", Health.MISSING, str(error), "set it, or choose another model")
    where = choice.base_url or choice.provider
    return Finding("model", Health.OK, f"{choice.name} at {where} ({choice.source}); `handrail model test` tries it")


def _gate(config: Config) -> Finding:
    """Whether what is dangerous would be asked, and who would answer."""
    from ..approval.gate import STORE_NAME
    from ..approval.settings import Settings
    from ..config import config_path, state_dir

    settings = config.approvals
    try:
        Settings(path=config_path()).policy()
        waiting = _waiting(state_dir() / STORE_NAME)
    except HandrailError as error:
        fix = "correct it; until then nothing that passes the gate runs"
        return Finding("approvals", Health.BROKEN, str(error), fix)
    told = f"{waiting} waiting, {len(config.command_allowlist)} kinds always allowed"
    if settings.mode == "off":
        fix = "set it with `handrail config set approvals.mode manual`"
        return Finding(
            "approvals", Health.MISSING, f"mode off: nobody is asked before something dangerous; {told}", fix
        )
    if settings.mode == "smart" and not (settings.smart_url and settings.smart_model):
        fix = "set approvals.smart_url and approvals.smart_model; until then a person is asked"
        return Finding("approvals", Health.MISSING, f"mode smart has no model to ask; {told}", fix)
    return Finding("approvals", Health.OK, f"mode {settings.mode}; {told}")


def _waiting(store: Path) -> int:
    from ..store.approvals import ApprovalStore

    if not store.exists():
        return 0
    opened = ApprovalStore(store)
    try:
        return len(opened.pending())
    finally:
        opened.close()


@contextlib.contextmanager
def _quiet(logger: str) -> Iterator[None]:
    import logging

    log = logging.getLogger(logger)
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(before)


def _ripgrep() -> Finding:
    path = shutil.which("rg")
    if path is None:
        fix = "install ripgrep; until then files are searched in Python"
        return Finding("ripgrep", Health.MISSING, "not found; searching large folders is slower", fix)
    return Finding("ripgrep", Health.OK, path)
