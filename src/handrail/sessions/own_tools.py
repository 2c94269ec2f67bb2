"""A Handrail as seen by a session that brings MCP servers of its own: the same, with their tools added for it alone."""

from collections.abc import Mapping
from typing import Any

from ..app import Handrail
from ..config.paths import state_dir
from ..config.trust import digest
from ..core.registry import ToolRegistry
from ..errors import ConfigError
from ..mcp_client.server_config import given_server
from ..runtime.batches import Batches
from ..runtime.definitions import Definitions
from ..runtime.dispatch import Runtime
from ..settings.services import McpServerConfig
from ..tools.mcp.server_tools import McpTools
from ..toolsets import Toolsets


class WithOwnTools:
    """Everything that is not here is the Handrail's. Raises ConfigError for a server that cannot be used."""

    def __init__(self, app: Handrail, servers: Mapping[str, McpServerConfig | Mapping[str, Any]]) -> None:
        found = [given_server(name, settings) for name, settings in servers.items()]
        for server in found:
            if server.problem:
                raise ConfigError(server.problem, key=f"mcp_servers.{server.name}")
        self._app = app
        self.registry = ToolRegistry(availability=app.registry.availability)
        self.registry.adopt(app.registry.entries())
        for alias, toolset in app.registry.get_registered_toolset_aliases().items():
            self.registry.register_toolset_alias(alias, toolset)
        # What the user has trusted of a server holds for one that is started in the same way.
        stamp = digest({server.name: repr(server.settings).encode() for server in found})[:16]
        folder = state_dir(app.config.home) / "mcp" / f"session-{stamp}"
        self.mcp = McpTools(found, self.registry, folder=folder, config=app.config)
        self.registry.late = self._find
        self.toolsets = Toolsets(self.registry, app.toolsets.custom)
        self.toolsets.expected = app.toolsets.expected | {f"mcp-{server.name}" for server in found}
        self.toolsets.unloaded = app.toolsets.unloaded
        shared = {name: getattr(app.runtime, name) for name in ("results", "approver", "person", "gate", "effects")}
        shared |= {"environments": app.environments, "processes": app.processes}
        self.runtime = Runtime(self.registry, hooks=app.hooks, config=app.config, **shared)
        self.runtime.own_toolsets = lambda: self.toolsets
        self.runtime.given_by_default = lambda: self.definitions.names(*app.chosen_toolsets())
        self.definitions = Definitions(self.registry, self.toolsets)
        self.batches = Batches(self.runtime, share=app.batches)
        self.mcp.start(max(server.settings.connect_timeout for server in found))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._app, name)

    def close(self) -> None:
        """End the servers; the Handrail itself stays open."""
        self.registry.late = None
        self.mcp.close()

    def _find(self, name: str) -> str:
        problem = self.mcp.find(name)
        if not problem and self._app.registry.late is not None:
            problem = self._app.registry.late(name)
            if (entry := self._app.registry.get_entry(name)) is not None:
                self.registry.adopt([entry])
        return problem
