"""The configured MCP servers: those of config.yaml, and those of a project's `.mcp.json` once it is trusted."""

import dataclasses
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..config.paths import MCP_FILE, project_mcp_file, read_text
from ..config.trust import Trust, digest
from ..config.validation import build, check
from ..errors import ConfigError
from ..settings.services import McpServerConfig

TRUST_KIND = "mcp"
_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_NAME = re.compile(r"[A-Za-z0-9_-]{1,32}")
_MODULE_ENDS = (".py", "/__main__.py", "/__init__.py")
# The settings in which variables are filled in.
_TEXTS = ("command", "args", "env", "url", "headers", "client_id", "client_secret")
_PATHS = ("cwd", "client_key", "ca_file", "tls_cert", "tls_key")
# Other names of the transports.
_TYPES = {"streamable-http": "http", "streamable_http": "http", "streamableHttp": "http"}


class Server(NamedTuple):
    """One configured server. `problem` says why it cannot be used."""

    name: str
    settings: McpServerConfig
    source: str  # the file that configures it
    problem: str = ""

    @property
    def way(self) -> str:
        """stdio, http or sse."""
        usual = "stdio" if self.settings.command else "http"
        return usual if self.settings.type == "auto" else self.settings.type

    @property
    def key(self) -> str:
        """The name of its stored data: two projects may use the same server name."""
        in_project = f"-{digest({'source': self.source.encode()})[:12]}" if self.source.endswith(MCP_FILE) else ""
        return self.name + in_project


def find_servers(
    configured: Mapping[str, McpServerConfig],
    *,
    config_file: Path,
    project: Path | None = None,
    trust: Trust | None = None,
) -> list[Server]:
    """Every server, those of config.yaml first: a project cannot take the name of one of the user's."""
    found = [_checked(Server(name, settings, str(config_file))) for name, settings in configured.items()]
    path = project_mcp_file(project)
    others = [] if path is None else read_project(path, trust or Trust())
    return found + [server for server in others if server.name not in configured]


def given_server(name: str, settings: McpServerConfig | Mapping[str, Any]) -> Server:
    """A server that a program brings, as its settings or as the mapping that config.yaml would have."""
    if isinstance(settings, McpServerConfig):
        return _checked(Server(name, settings, "the program"))
    return _checked(_from_json(name, dict(settings), Path("mcp_servers"), "")._replace(source="the program"))


def project_digest(path: Path) -> str:
    """A digest of the file and of the project's own programs that its servers start: trust covers what would run."""
    return digest({MCP_FILE: path.read_bytes(), **{str(file): file.read_bytes() for file in _programs(path)}})


def _programs(path: Path) -> set[Path]:
    """The files of the project that the command lines of its servers name."""
    found: set[Path] = set()
    for raw in _servers_in(path).values():
        words = [raw.get("command"), *(raw.get("args") or ())] if isinstance(raw, dict) else []
        for folder in {path.parent, path.parent / str(raw.get("cwd") or ".")} if words else ():
            values = [part for word in words for part in (str(word), str(word).partition("=")[2]) if part]
            found |= {file for value in values if (file := folder / value).is_file()}
            # `python -m server` starts a module
            modules = [folder / f"{value.replace('.', '/')}{end}" for value in values for end in _MODULE_ENDS]
            found |= {file for file in modules if file.is_file()}
    root = path.parent.resolve()
    return {file.resolve() for file in found if root in file.resolve().parents}


def trust_project(path: Path) -> int:
    """Trust a project's file as it is now. Returns its number of servers. Raises ConfigError if it cannot be read."""
    servers = _servers_in(path)
    Trust().trust(TRUST_KIND, path, project_digest(path))
    return len(servers)


def read_project(path: Path, trust: Trust) -> list[Server]:
    """The servers in a project's file. None is used before you have trusted exactly this content."""
    try:
        servers = _servers_in(path)
        found = (TRUST_KIND, path, project_digest(path))
    except (ConfigError, OSError) as error:
        return [Server(MCP_FILE, McpServerConfig(), str(path), str(error))]
    problem = ""
    if not trust.is_trusted(*found):
        why = "it has changed since it was trusted" if trust.has_changed(*found) else "it comes with the project"
        problem = f"{why}; read {MCP_FILE}, then `handrail mcp trust`"
    return [_checked(_from_json(name, raw, path, problem)) for name, raw in servers.items()]


def _servers_in(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(read_text(path) or "{}")
    except ValueError as error:
        raise ConfigError(f"is not JSON: {error}", path=str(path)) from None
    servers = content.get("mcpServers", {}) if isinstance(content, dict) else None
    if not isinstance(servers, dict):
        raise ConfigError("must be an object with `mcpServers`", path=str(path))
    return servers


def _from_json(name: str, raw: Any, path: Path, problem: str) -> Server:
    if not isinstance(raw, dict):
        return Server(name, McpServerConfig(), str(path), "it is not an object")
    known = {field.name for field in dataclasses.fields(McpServerConfig)}
    values = {key: value for key, value in raw.items() if key in known}
    values["type"] = _TYPES.get(str(raw.get("type", "auto")), raw.get("type", "auto"))
    try:
        check({"mcp_servers": {name: values}}, path=str(path))
        settings = build({"mcp_servers": {name: values}}).mcp_servers[name]
    except ConfigError as error:
        return Server(name, McpServerConfig(), str(path), str(error).replace("mcp_servers.", "mcpServers."))
    return Server(name, settings, str(path), problem)


def _checked(server: Server) -> Server:
    return server if server.problem else server._replace(problem=problem_of(server))


def problem_of(server: Server) -> str:
    """Why a server cannot be used as configured; empty if it can."""
    settings = server.settings
    if not _NAME.fullmatch(server.name) or "__" in server.name:
        return "its name must be 1 to 32 of the characters a-z A-Z 0-9 _ -, without a double _"
    if bool(settings.command) == bool(settings.url):
        return "it needs either a command or a url"
    if server.way == "stdio" and not settings.command:
        return "stdio needs a command"
    has_login = settings.client_id and (settings.client_secret or settings.client_key)
    if settings.login == "client_credentials" and not has_login:
        return "login by client_credentials needs client_id, and client_secret or client_key"
    if server.way != "stdio" and not settings.url:
        return f"{server.way} needs a url"
    return ""


def expanded(settings: McpServerConfig, environ: Mapping[str, str] | None = None) -> McpServerConfig:
    """The settings with `${NAME}` and `${NAME:-default}` filled in. Raises ConfigError for a variable that is not set."""
    environ = os.environ if environ is None else environ

    def variable(match: re.Match[str]) -> str:
        found = environ.get(match[1])
        if found is None and match[2] is None:
            raise ConfigError(f"the environment variable {match[1]} is not set; set it where Handrail is started")
        return found or match[2] or ""

    def fill(value: Any, *, is_path: bool = False) -> Any:
        if isinstance(value, str):
            text = _VARIABLE.sub(variable, value)
            return os.path.expanduser(text) if is_path else text
        if isinstance(value, Mapping):
            return {name: fill(each) for name, each in value.items()}
        return value if value is None else tuple(map(fill, value))

    filled = {name: fill(getattr(settings, name), is_path=name in _PATHS) for name in (*_TEXTS, *_PATHS)}
    return dataclasses.replace(settings, **filled)


def token_hint(server: Server) -> str:
    set_token = f"config set mcp_servers.{server.name}.headers.Authorization 'Bearer ${{TOKEN}}'"
    return f"if you have a token for it, send that: `handrail {set_token}`"
