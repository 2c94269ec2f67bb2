"""Show a code that lets someone use the agent from a chat.

They send it to the agent's account in a chat, once, within ten minutes.

Examples:
  handrail pair
  handrail pair list
  handrail pair remove matrix @ada:example.org
"""

from typing import Annotated

from ...config.paths import state_dir
from ...serve.gateway.store import STORE_NAME, GatewayStore
from ..options import Context, Json, argument, new_cli
from ..output import emit, emit_table, refuse, say

cli = new_cli()


@cli.callback(invoke_without_command=True, no_args_is_help=False)
def show(context: Context) -> None:
    if context.invoked_subcommand is not None:
        return
    emit(_store().new_code())
    say("Send this to the agent's account in a chat of its own. It works once, within ten minutes.")


@cli.command("list")
def list_people(as_json: Json = False) -> None:
    """List the people who may use the agent."""
    found = _store().people()
    rows, empty = [each[:2] for each in found], "Nobody is paired. `handrail pair` shows a code to send."
    emit_table(("ACCOUNT", "PERSON"), rows, [each._asdict() for each in found], as_json=as_json, wide=1, empty=empty)


@cli.command()
def remove(
    account: Annotated[str, argument("ACCOUNT", "The account's name in the configuration.")],
    person: Annotated[str, argument("PERSON", "As `handrail pair list` shows them.")],
) -> None:
    """Withdraw a person's access to the agent."""
    if not _store().unpair(account, person):
        refuse(f"{person} is not paired with {account}; `handrail pair list` shows who is")
    say(f"{person} has no access any more")


def _store() -> GatewayStore:
    return GatewayStore(state_dir() / STORE_NAME)
