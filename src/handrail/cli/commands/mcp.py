"""See, add and try MCP servers.

Examples:
  handrail mcp add time -- mcp-server-time
  handrail mcp add docs https://example.com/mcp --header 'X-Key: ${DOCS_KEY}'
  handrail mcp test time
  handrail call mcp__time__get_current_time timezone=UTC
"""

import asyncio
import contextlib
import dataclasses
import json
import os
import secrets
import shutil
import sys
import webbrowser
from typing import Annotated, Any, NoReturn

from ...base.safe_text import made_visible, mask_secrets
from ...base.suggest import did_you_mean
from ...config.config_file import ConfigFile
from ...config.paths import config_path, project_mcp_file
from ...config.store import load_config
from ...config.validation import plain
from ...core.registry import ToolRegistry
from ...errors import ToolUnavailable
from ...mcp_client.manager import check_installed
from ...mcp_client.oauth import LOGIN_SECONDS, Login
from ...mcp_client.server_config import Server, find_servers, problem_of, trust_project
from ...mcp_client.tool_listing import Pins
from ...serve.server import given_token, listening, parse_address
from ...settings.services import McpServerConfig
from ...tools.mcp.server_tools import McpTools, tool_name
from ..call_text import counted
from ..options import Hosts, Json, TokenFd, Toolsets, argument, new_cli, option
from ..output import ExitCode, as_typed, emit, emit_either, emit_json, emit_table, refuse, say
from ..runtime import log_as_notes, open_runtime

cli = new_cli()
LIST_SECONDS = 10.0
Name = Annotated[str, argument("NAME", "The server's name.", show_default=False)]
Target = Annotated[list[str], argument("URL | -- COMMAND...", "An address, or a command.")]
Env = Annotated[list[str] | None, option("--env -e KEY=VALUE", "For the command.")]
Header = Annotated[list[str] | None, option("--header 'KEY: VALUE'", "For HTTP.")]
Sse = Annotated[bool, option("--sse", "The server uses the older SSE transport.")]
Offline = Annotated[bool, option("--offline", "Do not connect to them.")]
Http = Annotated[str | None, option("--http [HOST:]PORT", "Serve over HTTP instead of stdio.")]
Backend = Annotated[str, option("--env BACKEND", "Where commands run, such as docker.")]
TrustName = Annotated[str | None, argument("[NAME]", "A server; without one, the project's file.")]
_UNCONFIRMED = "it came into config.yaml since you confirmed that; `handrail config confirm` in a terminal of yours"


@cli.command()
def add(name: Name, target: Target, env: Env = None, header: Header = None, sse: Sse = False) -> None:
    """Add a server to config.yaml: an address, or `--` and the command that starts it.

    Write secrets as ${NAME}: they are then taken from the environment.
    """
    is_address = "://" in target[0]
    if is_address and (len(target) > 1 or not target[0].startswith(("http://", "https://"))):
        refuse(f"{' '.join(target)!r} is neither an address, such as https://example.com/mcp, nor a command")
    if env and is_address:
        refuse("--env is for a command; an address takes --header")
    if (header or sse) and not is_address:
        refuse(f"{'--header' if header else '--sse'} is for an address; a command takes --env")
    given: dict[str, Any] = {
        "url" if is_address else "command": target[0],
        "type": "sse" if sse else "",
        "args": target[1:],
        "env": dict(_pair(each, "=") for each in env or ()),
        "headers": dict(_pair(each, ":") for each in header or ()),
    }
    values = {name: value for name, value in given.items() if value}
    if problem := problem_of(Server(name, McpServerConfig(**values), "")):
        refuse(f"{name}: {problem}")
    file = ConfigFile()
    if name in file.load().mcp_servers:
        refuse(f"there is a server {name!r} already; `handrail mcp remove {name}` first")
    file.set(("mcp_servers", name), values)
    emit(as_typed(f"{name} is added; `handrail mcp test {name}` tries it"))
    if not is_address and shutil.which(target[0]) is None:
        say(f"there is no program {target[0]} here; install it before {name} can be used")
    try:
        check_installed()
    except ToolUnavailable as error:
        say(f"{error}, before it can be used")


@cli.command()
def remove(name: Name) -> None:
    """Take a server out of config.yaml, and forget what was trusted of it and the login there."""
    file = ConfigFile()
    known = file.load().mcp_servers
    if name not in known:
        _unknown(name, list(known))
    file.unset(("mcp_servers", name))
    server = Server(name, known[name], str(file.path))
    Pins(server).forget()
    Login(server, "").forget()
    emit(f"{name} is removed")


@cli.command("list")
def list_servers(as_json: Json = False, offline: Offline = False) -> None:
    """List the servers with their health: connect to each, for at most 10 seconds, and show what is wrong with it."""
    servers, empty = _servers(), "No MCP servers. `handrail mcp add NAME -- COMMAND` adds one."
    mcp = None if offline or not servers else open_runtime().mcp
    if mcp is not None:
        mcp.start(LIST_SECONDS)
    states = {each.name: _state(each, mcp, offline=offline) for each in servers}
    views = [{**_as_json(server), "state": states[server.name]} for server in servers]
    rows = []
    for each in servers:
        target = each.settings.url or " ".join((each.settings.command, *each.settings.args))
        rows.append((each.name, each.way, mask_secrets(target), states[each.name]))
    emit_table(("SERVER", "WAY", "WHERE", "STATE"), rows, views, as_json=as_json, wide=3, empty=empty)


@cli.command()
def get(name: Name) -> None:
    """Show how one server is configured, with secrets masked."""
    emit_json(_as_json(_get(name)))


@cli.command("test")
def try_server(name: Name, as_json: Json = False) -> None:
    """Connect to a server, and show what it offers or why it cannot be used."""
    status = _ready(name).connections.status()[name]
    value = {"name": name, "state": "ready", "protocol": status.protocol, "tools": status.tools}
    emit_either(value, f"{name} is ready: {counted(status.tools, 'tool')}, protocol {status.protocol}", as_json=as_json)


@cli.command()
def tools(name: Name, as_json: Json = False) -> None:
    """List a server's tools as the server describes them, and which of them need your trust.

    For a tool that needs trust you see the whole text that the model would get, with invisible characters shown.
    """
    mcp = _ready(name)
    doubts = mcp.doubts.get(name, {})
    listed = mcp.connections.offer(name).tools
    views: list[dict[str, Any]] = [
        {
            "name": tool_name(name, each.name),
            "description": each.description,
            "parameters": each.schema,
            "annotations": each.annotations,
            "problem": each.problem or doubts.get(each.name, ""),
        }
        for each in listed
    ]
    rows = []
    for each, view in zip(listed, views, strict=True):
        schema = f" {json.dumps(each.schema, ensure_ascii=False)}" if each.name in doubts else ""
        text = made_visible(" ".join(f"{each.description}{schema}".split()))
        rows.append((view["name"], view["problem"] or "ok", text))
    emit_table(("TOOL", "STATE", "WHAT IT SAYS"), rows, views, as_json=as_json, wide=2)


@cli.command()
def trust(name: TrustName = None) -> None:
    """Trust a server's tools as they are now, or the .mcp.json of this project.

    Look first: `handrail mcp tools NAME` shows what the tools say, and the file what would be started.
    """
    if name is not None:
        connections = _ready(name).connections
        listed = connections.offer(name).tools
        Pins(connections.servers[name]).trust(listed)
        emit(f"{name}: {len(listed)} tools are trusted as they are now")
        return
    if (path := project_mcp_file()) is None:
        refuse("there is no .mcp.json here")
    emit(f"{path} is trusted as it is now: {trust_project(path)} servers")


@cli.command()
def login(name: Name) -> None:
    """Log in to a server that needs it: a page is opened, and the login is kept for next time (OAuth)."""
    server = _get(name)
    if server.problem or server.way == "stdio":
        refuse(f"{name}: {server.problem or 'it is a program of this machine; there is no login'}")
    log_as_notes()
    with contextlib.closing(McpTools([server], ToolRegistry(), browse=_browse)) as tools:
        tools.start(server.settings.connect_timeout + LOGIN_SECONDS)
        problem, status = tools.reach(name), tools.connections.status().get(name)
        if problem or status is None:
            refuse(f"{name}: {problem}", ExitCode.FAILED)
    emit(f"{name} is ready: {counted(status.tools, 'tool')}, protocol {status.protocol}")


@cli.command()
def logout(name: Name) -> None:
    """Forget the login at a server."""
    emit(f"{name}: the login is forgotten" if Login(_get(name), "").forget() else f"{name}: there was no login")


def _browse(url: str) -> None:
    say(f"Log in at this page: {url}")
    # Without a screen some text browser would take the terminal.
    if sys.platform == "darwin" or any(map(os.environ.get, ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY"))):
        webbrowser.open(url)


@cli.command()
def serve(
    http: Http = None, toolset: Toolsets = None, env: Backend = "", host: Hosts = None, token_fd: TokenFd = None
) -> None:
    """Offer these tools to an MCP client, with the same approval and limits.

    Over stdio the client starts this command. Over HTTP every request needs the token in HANDRAIL_MCP_TOKEN (one is made
    and shown if it is not set), and the address is this machine's alone unless you say another.
    """
    check_installed()
    from ...serve.mcp.http import TOKEN_VARIABLE, http_app, serve_http
    from ...serve.mcp.server import DEFAULT_TOOLSETS, HandrailServer, serve_stdio

    address = parse_address(http) if http else None
    if address is not None:  # what the tools run must not find the token, and answer its own questions with it
        token = given_token(TOKEN_VARIABLE, descriptor=token_fd)
    app = open_runtime()
    app.warn_untrusted()
    for name in toolset or DEFAULT_TOOLSETS:  # an unknown one fails now, not at the client's first request
        app.toolsets.resolve(name)
    server = HandrailServer(app, toolsets=toolset or DEFAULT_TOOLSETS, backend=env).build()
    if address is None:
        asyncio.run(serve_stdio(server))
        return
    with listening(address) as (door, address):
        if not token:
            token = secrets.token_urlsafe(32)
            say(f"{TOKEN_VARIABLE} is not set; for this run it is {token}")
        say(f"serving on {address.url}/mcp")
        asyncio.run(serve_http(http_app(server, address, token, names=tuple(host or ())), door))


def _servers() -> list[Server]:
    return find_servers(load_config().mcp_servers, config_file=config_path())


def _get(name: str) -> Server:
    servers = {server.name: server for server in _servers()}
    if name not in servers:
        _unknown(name, list(servers))
    return servers[name]


def _ready(name: str) -> McpTools:
    """Only this server, for as long as it may take to connect."""
    server, mcp = _get(name), open_runtime().mcp
    if mcp is None or name not in mcp.connections.servers:
        refuse(f"{name}: {_UNCONFIRMED}")
    if problem := mcp.reach(name):
        is_usable = not server.problem and server.settings.enabled
        refuse(f"{name}: {problem}", ExitCode.FAILED if is_usable else ExitCode.USAGE)
    return mcp


def _state(server: Server, mcp: McpTools | None, *, offline: bool) -> str:
    if server.problem or not server.settings.enabled:
        return server.problem or "not enabled"
    if offline:
        return "configured"
    if mcp is None or server.name not in mcp.connections.servers:
        return _UNCONFIRMED
    if problem := mcp.absent().get(server.name):
        return " ".join(problem.split())
    held = len(mcp.doubts.get(server.name, {}))
    held_back = f", {held} of them wait for `handrail mcp trust {server.name}`" if held else ""
    return f"ready: {counted(len(mcp.connections.offer(server.name).tools), 'tool')}{held_back}"


def _as_json(server: Server) -> dict[str, Any]:
    settings = plain(dataclasses.asdict(server.settings))
    for part in ("env", "headers"):
        settings[part] = {key: _hidden(value) for key, value in settings[part].items()}
    settings["client_secret"] = settings["client_secret"] and _hidden(settings["client_secret"])
    settings["url"] = mask_secrets(settings["url"])
    settings["args"] = [mask_secrets(each) for each in settings["args"]]
    return {"name": server.name, "way": server.way, "from": server.source, "problem": server.problem, **settings}


def _hidden(value: str) -> str:
    """A reference to a variable is not a secret; anything else may be one."""
    return value if value.startswith("${") and value.find("}") == len(value) - 1 else "[hidden]"


def _pair(text: str, sign: str) -> tuple[str, str]:
    key, found, value = text.partition(sign)
    if not found or not key.strip():
        refuse(f"{text!r} is not KEY{sign}VALUE")
    return key.strip(), value.strip()


def _unknown(name: str, known: list[str]) -> NoReturn:
    refuse(f"no MCP server {name!r}; {did_you_mean(name, known) if known else 'none is configured'}")
