"""Serve tools, agents and approvals over HTTP, with a web console.

It listens on this machine only; another address needs a token first. The printed link lets your browser in.

Examples:
  handrail serve
  handrail serve --http 0.0.0.0:8765 --host agent.example.org
  handrail serve token new phone --role approve
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated

from ...approval.display import visible
from ...config.paths import state_dir
from ...errors import ConfigError
from ...model_tools import default, reset
from ...platforms.table import accounts
from ...serve import server as running
from ...serve.shared_state import CONSOLE, Served
from ...serve.tokens import STORE_NAME, Keys, Role, view_of
from ..call_text import when
from ..folder_trust import ask_about_folder
from ..options import Context, Hosts, Json, TokenFd, TrustFolder, argument, new_cli, option
from ..output import as_typed, emit, emit_table, fitted, note, refuse, say
from ..runtime import ask_about_plugins, log_as_notes

if TYPE_CHECKING:
    from uvicorn import Server

cli = new_cli()
tokens = new_cli(help="Tokens for programs and other devices.")
cli.add_typer(tokens, name="token")
logins = new_cli(help="Browsers that are logged in.")
cli.add_typer(logins, name="login")
_NEW_TOKEN = "`handrail serve token new NAME`"
DEFAULT = "127.0.0.1:8765"
Http = Annotated[str, option("--http --port [HOST:]PORT", "Where to listen.")]
NoCron = Annotated[bool, option("--no-cron", "Do not run scheduled jobs.")]


@cli.callback(invoke_without_command=True, no_args_is_help=False)
def run(
    context: Context,
    http: Http = DEFAULT,
    host: Hosts = None,
    no_cron: NoCron = False,
    token_fd: TokenFd = None,
    trust_folder: TrustFolder = False,
) -> None:
    if context.invoked_subcommand is not None:
        return
    if find_spec("starlette") is None or find_spec("uvicorn") is None:
        raise ConfigError("the server needs more packages: pip install 'handrail[serve]'")
    log_as_notes()
    ask_about_plugins()
    ask_about_folder(trust=trust_folder)
    address = running.parse_address(http)
    token = running.given_token(descriptor=token_fd)
    served, is_new = Served(default(), token=token), True
    accounts(served.app.config.gateway.accounts)  # reports what is wrong with them before anything starts
    running.check_bind(address, has_token=served.keys.has_token)

    def make() -> Server:
        nonlocal served, is_new
        if not is_new:  # the configuration is to be loaded again
            reset()
            served = Served(default(), token=token, links_of=served.keys)
        is_new = False
        return running.server(served, address, hosts=tuple(host or ()))

    with running.as_the_server(address) as (door, address):
        try:
            if sys.stdout.isatty():
                emit(f"Open {address.url}/login?code={served.keys.new_link(served.keys.operator)}")
                text = f"The link works once, within ten minutes. Other devices need {_NEW_TOKEN}. Ctrl-C stops it."
                emit(fitted(as_typed(text)))
            else:  # from a log, whoever reads that could log in
                emit(f"Serving on {address.url}")
                emit(fitted(as_typed(f"To log in, make a token in a terminal of yours: {_NEW_TOKEN}")))
            if not CONSOLE.exists():
                emit(fitted("The API works, but there is no web console: npm builds it when Handrail is installed."))
            running.keep_serving(make, door, with_jobs=not no_cron)
        finally:
            note(("\n" if sys.stderr.isatty() else "") + "The server has stopped. Goodbye.")  # below the ^C


@tokens.command("new")
def new_token(
    name: Annotated[str, argument("NAME", "What it is for, such as phone.")],
    role: Annotated[str, option("--role ROLE", "watch, approve or operate.")] = "watch",
) -> None:
    """Make a token and print it. It is not stored, and not shown again.

    `watch` sees everything, `approve` answers questions too, `operate` also runs tools and agents.
    """
    try:
        wanted = Role.named(role)
    except ValueError as error:
        refuse(str(error))
    emit(_keys().new_token(name, wanted))


@tokens.command("list")
def list_tokens(as_json: Json = False) -> None:
    """List the names of the tokens."""
    found = _keys().tokens()
    views, rows = [*map(view_of, found)], [(each.name, each.role.word) for each in found]
    empty = f"There are no tokens. {_NEW_TOKEN} makes one."
    emit_table(("NAME", "ROLE"), rows, views, as_json=as_json, wide=0, empty=empty)


@tokens.command("revoke")
def revoke_token(name: Annotated[str, argument("NAME", "The token's name.")]) -> None:
    """Revoke a token, and every browser that logged in with it."""
    if not _keys().revoke(name):
        refuse(f"no token is called {name!r}; `handrail serve token list` shows those there are")
    say(f"{name} is no longer let in")


@logins.command("list")
def list_logins(as_json: Json = False) -> None:
    """List the browsers that are logged in, the one used last first."""
    found = _keys().logins.all()
    rows = [(each.id, each.name, each.role.word, when(each.used), each.address, visible(each.agent)) for each in found]
    headers = ("ID", "NAME", "ROLE", "LAST USED", "FROM", "BROWSER")
    empty = "No browser is logged in. `handrail serve` prints a link that logs one in."
    emit_table(headers, rows, [*map(view_of, found)], as_json=as_json, wide=5, empty=empty)


@logins.command("end")
def end_login(login: Annotated[str, argument("ID", "As `handrail serve login list` shows it.")]) -> None:
    """Log a browser out.

    Examples:
      handrail serve login end 3f9a01bc
    """
    if not _keys().logins.end(login):
        refuse(f"there is no login {login!r}; `handrail serve login list` shows those there are")
    say(f"{login} is logged out")


def _keys() -> Keys:
    return Keys(state_dir() / STORE_NAME, token=None)
