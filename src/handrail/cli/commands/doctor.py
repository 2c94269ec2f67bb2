"""Check this installation, and show how to fix what is wrong.

It works when the configuration does not. Optional parts that are missing are listed, but are no faults. A
configuration that cannot be used, or a tool that cannot be imported, is a fault.

Examples:
  handrail doctor
  handrail doctor --json | jq '.findings[] | select(.health != "ok")'

Exit codes: 0 nothing is broken, 1 something is.
"""

from __future__ import annotations

import contextlib
import logging
import os
import platform
import shutil
import sys
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple, TextIO

from ... import __version__
from ...agent.models.model_selection import HOW_TO, connect, find, known_providers
from ...approval.gate import STORE_NAME
from ...approval.settings import Settings
from ...config.paths import config_path, state_dir
from ...config.store import load_config
from ...core.builtin import builtin_tools, scan_builtin
from ...core.registry import ToolRegistry
from ...environments import protection
from ...environments.backend_table import Backends
from ...environments.tasks import TaskEnvironments
from ...errors import ConfigError, HandrailError
from ...mcp_client.server_config import find_servers, problem_of
from ...plugins.command_hooks import register_external
from ...plugins.hook_manager import HookManager
from ...plugins.loader import Plugins, State
from ...runtime.dispatch import configured_approver, load_plugins
from ...settings.schema import Config
from ...store.approvals import ApprovalStore
from ...tools.mcp.server_tools import McpTools
from ...toolsets import Toolsets
from ..call_text import counted
from ..options import Exit, Json
from ..output import ExitCode, as_typed, colours, emit, emit_json, fitted, paint, result_stream, visible

MCP_SECONDS = 15.0


def doctor(as_json: Json = False) -> None:
    with result_stream() as stdout:
        findings = list(examine())
        broken = sum(finding.health is Health.BROKEN for finding in findings)
        if as_json:
            emit_json({"ok": not broken, "findings": [each._asdict() for each in findings]}, stdout)
        else:
            for finding in _by_fix(findings):
                emit(_shown(finding, stdout), stdout)
            emit(f"\n{broken} broken." if broken else "\nNothing is broken.", stdout)
    raise Exit(ExitCode.FAILED if broken else ExitCode.OK)


def _by_fix(findings: list[Finding]) -> Iterator[Finding]:
    """The findings, with one in place of those of several tools that the same thing would fix."""
    groups: dict[object, list[Finding]] = {}
    for number, each in enumerate(findings):
        groups.setdefault(each.fix if each.fix and each.what.startswith("tool ") else number, []).append(each)
    for first, *others in groups.values():
        reasons = "; ".join(dict.fromkeys(each.detail for each in (first, *others)))
        names = f"{first.what} and {len(others)} more" if others else first.what
        yield first._replace(what=names, detail=reasons)


def _shown(finding: Finding, stdout: TextIO) -> str:
    """Broken into lines before it is painted: colours have no width."""
    mark, style = _MARKS[finding.health]
    begin, colour = f"{mark} {finding.what}:", colours(stdout)
    text = fitted(as_typed(f"{begin} {visible(finding.detail)}"), stdout, indent=4)
    if text.startswith(begin):
        text = f"{paint(mark, style, on=colour)} {paint(finding.what, 'bold', on=colour)}:{text.removeprefix(begin)}"
    if not finding.fix:
        return text
    fix = fitted(as_typed(f"    fix: {visible(finding.fix)}"), stdout, indent=5)
    return f"{text}\n{fix.replace('fix:', paint('fix:', 'dim', on=colour), 1)}"


class Health(StrEnum):
    """`MISSING` is something optional that is not there; only `BROKEN` is a fault."""

    OK = "ok"
    MISSING = "missing"
    BROKEN = "broken"


_MARKS = {Health.OK: ("✓", "green"), Health.MISSING: ("–", "yellow"), Health.BROKEN: ("✗", "red")}


class Finding(NamedTuple):
    """One thing that was looked at."""

    what: str
    health: Health
    detail: str
    fix: str = ""


def examine() -> Iterator[Finding]:
    """Everything, from the ground up."""
    yield Finding("python", Health.OK, f"{platform.python_version()} ({sys.executable})")
    yield Finding("handrail", Health.OK, f"{__version__} ({Path(__file__).parents[2]})")
    config, finding = _config()
    yield finding
    yield _state_folder()
    # A table of its own: looking must not change the default one.
    registry = ToolRegistry()
    registry.availability.config = config
    yield from _tools(registry)
    with _quiet():  # `_plugins` reports what it would warn of
        plugins = load_plugins(config, registry, HookManager(), Backends())
    if plugins is not None:
        yield from _plugins(plugins)
    yield from _toolsets(config, registry, plugins)
    yield _gate(config, plugins)
    protected = protection.examine(config)
    health = Health.OK if protected.is_whole else Health.MISSING
    yield Finding("protection", health, protected.detail, protected.fix)
    yield _effects(config)
    yield _model(config, plugins)
    yield from _mcp_servers(config)
    if (ripgrep := shutil.which("rg")) is None:
        fix = "install ripgrep; until then files are searched in Python"
        yield Finding("ripgrep", Health.MISSING, "not found; searching large folders is slower", fix)
    else:
        yield Finding("ripgrep", Health.OK, ripgrep)


def _config() -> tuple[Config, Finding]:
    """The configuration, or the defaults in place of one that cannot be used."""
    path = config_path()
    try:
        config = load_config()
        register_external(HookManager(), config.hooks, plugin="config")
    except ConfigError as error:
        fix = "correct it there, or with `handrail config edit`"
        return Config(), Finding("config", Health.BROKEN, str(error), fix)
    return config, Finding("config", Health.OK, f"{path}" if path.exists() else f"{path} (not there; defaults apply)")


def _state_folder() -> Finding:
    folder = state_dir()
    nearest = next(path for path in (folder, *folder.parents) if os.path.exists(path))
    if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
        what = "is not a folder" if not nearest.is_dir() else "cannot be written"
        fix = "correct that, or put everything elsewhere with HANDRAIL_HOME"
        return Finding("state folder", Health.BROKEN, f"{folder}: {nearest} {what}", fix)
    return Finding("state folder", Health.OK, f"{folder}" if folder.exists() else f"{folder} (made when needed)")


def _tools(registry: ToolRegistry) -> Iterator[Finding]:
    with _quiet():  # its warnings are findings here
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


def _mcp_servers(config: Config) -> Iterator[Finding]:
    """Connects to all of them at once."""
    servers = find_servers(config.mcp_servers, config_file=config_path())
    if not servers:
        return
    mcp = McpTools(servers, ToolRegistry(), folder=state_dir() / "mcp", config=config)
    try:
        with _quiet():
            mcp.start(MCP_SECONDS)
        problems, started = mcp.absent(), mcp.connections.status()
        for server in servers:
            what, problem = f"MCP server {server.name}", problems.get(server.name, "")
            # Most problems say what to do themselves.
            again = f"`handrail mcp test {server.name}` tries it again"
            fix = "" if "`" in problem else again if "; " in problem else f"install it, or correct its entry; {again}"
            if problem and problem == problem_of(server):
                yield Finding(what, Health.BROKEN, problem, "correct its entry with `handrail config edit`")
            elif server.name not in started:  # not enabled, or it waits for your trust or for a package of ours
                yield Finding(what, Health.MISSING, problem or "not enabled")
            elif problem:
                yield Finding(what, Health.BROKEN, problem, fix)
            else:
                yield Finding(what, Health.OK, counted(started[server.name].tools, "tool"))
    finally:
        mcp.close()


def _plugins(plugins: Plugins) -> Iterator[Finding]:
    for plugin in plugins.found:
        what = f"plugin {plugin.name}"
        if plugin.state is State.LOADED:
            yield Finding(what, Health.OK, f"{plugin.source.value}, {plugin.place}")
        elif plugin.state is State.FAILED:
            yield Finding(what, Health.BROKEN, plugin.reason, "correct it, or disable the plugin")
        else:
            yield Finding(what, Health.MISSING, plugin.state.value, plugin.reason)


def _toolsets(config: Config, registry: ToolRegistry, plugins: Plugins | None) -> Iterator[Finding]:
    toolsets = Toolsets(registry, {**(plugins.contributions.toolsets if plugins else {}), **config.toolsets})
    toolsets.unloaded = plugins.unloaded if plugins else ()
    servers = find_servers(config.mcp_servers, config_file=config_path())
    toolsets.expected = frozenset(f"mcp-{server.name}" for server in servers)
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


def _model(config: Config, plugins: Plugins | None) -> Finding:
    """Which model an agent would use. It is not called here: `handrail model test` does that."""
    providers = known_providers(plugins)
    if (choice := find(config.model, providers=providers)) is None:
        return Finding("model", Health.MISSING, "none is configured, and no server for local models runs here", HOW_TO)
    try:
        connect(choice, config.model, providers)
    except HandrailError as error:
        return Finding("model", Health.MISSING, str(error), "set it, or choose another model")
    where = choice.base_url or choice.provider
    return Finding("model", Health.OK, f"{choice.name} at {where} ({choice.source}); `handrail model test` tries it")


def _gate(config: Config, plugins: Plugins | None) -> Finding:
    """Whether what is dangerous would be asked, and who would answer."""
    settings, store, waiting = config.approvals, state_dir() / STORE_NAME, 0
    try:
        Settings(path=config_path()).policy()
        configured_approver(config, plugins)
        if store.exists():
            with contextlib.closing(ApprovalStore(store)) as opened:
                waiting = len(opened.pending())
    except HandrailError as error:
        fix = "correct it; until then nothing that passes the gate runs"
        return Finding("approvals", Health.BROKEN, str(error), fix)
    counts = f"{waiting} pending, {len(config.command_allowlist)} kinds always allowed"
    if settings.mode == "off":
        fix = "set it with `handrail config set approvals.mode manual`"
        detail = f"mode off: nobody is asked before something dangerous; {counts}"
        return Finding("approvals", Health.MISSING, detail, fix)
    if settings.mode == "smart" and not (settings.smart_url and settings.smart_model):
        fix = "set approvals.smart_url and approvals.smart_model; until then you are asked"
        return Finding("approvals", Health.MISSING, f"mode smart has no model to ask; {counts}", fix)
    return Finding("approvals", Health.OK, f"mode {settings.mode}; {counts}")


def _effects(config: Config) -> Finding:
    """Whether what commands change can be undone, and how much is kept for that."""
    kept = sum(path.lstat().st_size for path in (state_dir() / "journal").rglob("*") if path.is_file())
    with TaskEnvironments(config) as environments:
        try:
            how, reason = getattr(environments.of(None), "coverage", ("none", "this environment keeps no journal"))
        except HandrailError as error:
            how, reason = "none", str(error)
    counts = f"{kept >> 20:,} MB kept of {config.effects.keep_bytes >> 20:,}, for {config.effects.keep_days:g} days"
    if how == "full":
        return Finding("undo", Health.OK, f"what commands change can be undone; {counts}")
    fix = "see docs/explanation/what-can-be-undone.md; file tools can be undone all the same"
    return Finding("undo", Health.MISSING, f"what commands change is not watched: {reason}; {counts}", fix)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)
