"""`handrail serve`: the HTTP API, the web console, approvals from anywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from .. import exit_codes, options

if TYPE_CHECKING:
    from ...serve.tokens import Keys

DEFAULT = "127.0.0.1:8765"
_HELP = """Serve the tools, agents and approvals of this machine over HTTP, with a web console.

It listens on this machine alone; for another address it wants a token first. The line that it prints lets your browser in.

\b
Examples:
  handrail serve
  handrail serve --http 0.0.0.0:8765 --host agent.example.org
  handrail serve token new phone --role approve
"""

Http = Annotated[str, typer.Option("--http", metavar="[HOST:]PORT", help="Where to listen.")]


def add_to(app: typer.Typer) -> None:
    serve = typer.Typer(rich_markup_mode=None, help=_HELP, invoke_without_command=True)
    serve.callback(invoke_without_command=True)(run)
    token = typer.Typer(rich_markup_mode=None, no_args_is_help=True, help="Tokens for programs and other devices.")
    token.command("new")(new_token)
    token.command("list")(list_tokens)
    token.command("revoke")(revoke_token)
    serve.add_typer(token, name="token")
    app.add_typer(serve, name="serve")


NoCron = Annotated[bool, typer.Option("--no-cron", help="Do not run scheduled jobs.")]


def run(context: typer.Context, http: Http = DEFAULT, host: options.Hosts = None, no_cron: NoCron = False) -> None:
    """Serve the tools, agents and approvals of this machine over HTTP, with a web console."""
    if context.invoked_subcommand is not None:
        return
    from ...model_tools import default
    from ...platforms.table import accounts
    from ...serve import server as running
    from ...serve.address import parse_address
    from ...serve.shared_state import Served
    from ..approval_answers import refuse_inside
    from ..open_runtime import hide_from_others, log_as_notes
    from ..output import emit

    refuse_inside("serve")
    _check_installed()
    log_as_notes()
    address = parse_address(http)
    hide_from_others()
    token = running.token_from_environment()
    served = Served(default(), token=token)
    accounts(served.app.config.gateway.accounts)  # errors in them are reported before anything starts
    running.check_bind(address, has_token=served.keys.has_token)
    with running.as_the_server(address) as (door, address):
        server = running.server(served, address, hosts=tuple(host or ()))
        emit(f"Open {running.first_link(served, address)}")
        emit(
            "The link works once, within ten minutes. Other devices need `handrail serve token new NAME`. Ctrl-C stops it."
        )
        running.keep_serving(server, served, door, token=token, with_jobs=not no_cron)


def new_token(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What it is for, such as phone.")],
    role: Annotated[str, typer.Option("--role", help="watch, approve or operate.")] = "watch",
) -> None:
    """Make a token and print it. It is kept nowhere, and is not shown again.

    `watch` sees everything, `approve` answers questions too, `operate` also runs tools and agents.

    \b
    Examples:
      handrail serve token new phone --role approve
    """
    from ...serve.roles import Role
    from ..approval_answers import refuse_inside
    from ..output import emit, say

    refuse_inside("make tokens")
    try:
        wanted = Role.named(role)
    except ValueError as error:
        say(str(error))
        raise typer.Exit(exit_codes.ExitCode.USAGE) from None
    emit(_keys().new_token(name, wanted))


def list_tokens(as_json: options.Json = False) -> None:
    """List the tokens there are; not what they are."""
    from ..output import emit, emit_json, emit_table

    found = _keys().tokens()
    if as_json:
        emit_json([{**each._asdict(), "role": each.role.word} for each in found])
    elif found:
        emit_table(("NAME", "ROLE"), [(each.name, each.role.word) for each in found], wide=0)
    else:
        emit("There are no tokens.")


def revoke_token(name: Annotated[str, typer.Argument(metavar="NAME")]) -> None:
    """Take a token back, and every browser that came in by it."""
    from ..approval_answers import refuse_inside
    from ..output import say

    refuse_inside("revoke tokens")
    if not _keys().revoke(name):
        say(f"no token is called {name!r}; `handrail serve token list` shows those there are")
        raise typer.Exit(exit_codes.ExitCode.USAGE)
    say(f"{name} is not let in any more")


def _keys() -> Keys:
    from ...config.paths import state_dir
    from ...serve.tokens import STORE_NAME, Keys

    return Keys(state_dir() / STORE_NAME)


def _check_installed() -> None:
    from importlib.util import find_spec

    from ...errors import ConfigError

    if find_spec("starlette") is None or find_spec("uvicorn") is None:
        raise ConfigError("the server needs more packages: pip install 'handrail[serve]'")
