"""The parts of an application object that its configuration decides on; what most configurations lack is not imported."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..base.suggest import did_you_mean
from ..config.confirmed import Confirmed, held_config
from ..config.paths import config_path, project_mcp_file, state_dir
from ..errors import ConfigError
from ..plugins.sources import find_plugins
from ..store.results import FileResultStore

if TYPE_CHECKING:
    import os

    from ..approval.gate import ApprovalGate, Notices
    from ..core.registry import ToolRegistry
    from ..environments.backend_table import Backends
    from ..judge.rules.rulebook import Rule
    from ..plugins.hook_manager import HookManager
    from ..plugins.loader import Plugins
    from ..protocols import Approver, Person
    from ..settings.schema import Config
    from ..tools.mcp.server_tools import McpTools

log = logging.getLogger(__name__)

CONFIG_HOOKS = "config.yaml"
_MAX_NAMED = 5


class Source(NamedTuple):
    """A configuration with its home, and where it comes from."""

    config: Config
    reads_file: bool = False
    temporary_home: str | None = None
    pins: Mapping[str, str] = {}  # the files that hooks run, by digest
    baseline: Config | None = None  # what the file says, without the environment's overrides


def locate(config: Config | None, home: str | os.PathLike[str] | None, *, confirms: bool) -> Source:
    """The configuration that was given or is in the file, with the folder in which its object keeps its files."""
    temporary = None
    if home is not None:
        folder = str(Path(home).expanduser().absolute())
    elif config is None or config.home:
        folder = config.home if config is not None else ""
    else:
        import tempfile  # most programs keep their state

        folder = temporary = tempfile.mkdtemp(prefix="handrail-")
    if config is not None:
        return Source(replace(config, home=folder), temporary_home=temporary)
    file = config_path(folder)
    held = held_config(file, state_dir(folder), confirms=confirms)
    if held.waiting:
        what = "; ".join(map(str, held.waiting[:_MAX_NAMED])) + ("; ..." if len(held.waiting) > _MAX_NAMED else "")
        waits = "that waits for `handrail config confirm` in a terminal of yours"
        log.warning("%s is weaker than it was: %s; %s", file, what, "it holds from now on" if confirms else waits)
    return Source(replace(held.config, home=folder), reads_file=True, pins=held.files, baseline=held.of_file)


def results_of(config: Config) -> FileResultStore:
    limits = config.results
    return FileResultStore(
        state_dir(config.home) / "results", keep_days=limits.keep_days, max_total_bytes=limits.max_total_bytes
    )


def load_plugins(config: Config, registry: ToolRegistry, hooks: HookManager, backends: Backends) -> Plugins | None:
    """None when there are none, as for most: then nothing of theirs is imported."""
    found = list(find_plugins(home=config.home))
    if not found:
        return None
    from ..config.trust import TRUST_FILE, Trust
    from ..plugins.loader import Plugins

    trust = Trust(state_dir(config.home) / TRUST_FILE)
    plugins = Plugins(registry, hooks, config.plugins, trust=trust, load_seconds=config.calls.plugin_timeout)
    plugins.load(found)
    for backend in plugins.contributions.environments.values():
        backends.add(backend)
    return plugins


def add_command_hooks(hooks: HookManager, source: Source) -> None:
    """The programs that the configuration names as hooks."""
    config = source.config
    if not config.hooks:
        return
    from ..environments.protection import configured as protected_by
    from ..plugins.command_hooks import register_external

    register_external(
        hooks,
        config.hooks,
        plugin=CONFIG_HOOKS,
        folder=config_path(config.home).parent,
        pins=source.pins,
        protection=protected_by(config),
    )


def find_mcp_servers(config: Config, registry: ToolRegistry) -> McpTools | None:
    """Nothing is connected before somebody asks for the tools there are, or calls one of a server's."""
    if not config.mcp_servers and project_mcp_file() is None:
        return None
    from ..egress.tool_hosts import why_denied
    from ..environments.protection import launcher
    from ..mcp_client.server_config import find_servers
    from ..tools.mcp.server_tools import McpTools

    servers = find_servers(config.mcp_servers, config_file=config_path(config.home))
    servers = [each._replace(problem=each.problem or why_denied(each.settings.url, config)) for each in servers]
    mcp = McpTools(servers, registry, folder=state_dir(config.home) / "mcp", launch=launcher(config))
    registry.late = mcp.find
    return mcp


def configured_approver(config: Config, plugins: Plugins | None) -> Approver | None:
    """Who answers where no person is at hand: the one that a plugin adds, then the queue, or nobody.

    Raises ConfigError for one that no plugin has.
    """
    settings = config.approvals
    if not settings.approver and settings.headless == "deny":
        return None
    from ..approval.approvers import ChainApprover, QueueApprover

    queue = None if settings.headless == "deny" else QueueApprover()
    if not settings.approver:
        return queue
    known = plugins.contributions.approvers if plugins else {}
    if settings.approver not in known:  # no other may stand in
        hint = did_you_mean(settings.approver, list(known)) if known else "no plugin has one"
        raise ConfigError(f"approvals.approver: unknown approver {settings.approver!r}; {hint}")
    chosen: Approver = known[settings.approver]
    return chosen if queue is None else ChainApprover(chosen, queue)


def remote_person(config: Config) -> Person | None:
    """Who is asked where nobody is at the terminal."""
    if not config.messages.person:
        return None
    from ..platforms.table import RemoteUser

    return RemoteUser(config.messages.person, config.messages.targets, seconds=config.messages.answer_timeout)


def open_gate(source: Source, rules: Sequence[Rule], notices: Notices, *, confirms: bool) -> ApprovalGate:
    """One that was configured by a file reads it again when it changes."""
    from ..approval.gate import ApprovalGate  # most starts see no action
    from ..approval.policy import policy_file, project_settings
    from ..approval.self_protection import private_dirs
    from ..approval.settings import Settings

    home = source.config.home
    confirmed = Confirmed(state_dir(home))
    project = policy_file() or confirmed.policy_above()
    if project is not None and confirms:
        with contextlib.suppress(ConfigError):  # the gate reports it
            confirmed.confirm(project, project_settings(project))
    settings = Settings(
        source.config,
        path=config_path(home) if source.reads_file else None,
        project=project,
        more_rules=rules,
        confirmed=confirmed,
        baseline=source.baseline,
    )
    return ApprovalGate(settings, folder=state_dir(home), notices=notices, private=private_dirs(home))
