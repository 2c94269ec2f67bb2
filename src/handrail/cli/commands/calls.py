"""List the calls that changed something, the newest last.

Without --all, only those made in this folder. Each can be shown with `handrail effects` and taken back with `handrail undo`.

Examples:
  handrail calls
  handrail calls --all --json
  handrail calls --session 20261117-1a2b
  handrail calls prune
"""

from typing import Annotated

from ...effects.calls import as_json as call_view
from ...effects.calls import folder_here
from ..call_text import counted
from ..options import Context, DryRun, Json, new_cli, option
from ..output import emit_either, emit_table
from ..runtime import open_runtime
from .effects import call_row

cli = new_cli()
Days = Annotated[float | None, option("N", "Forget what is older than this.", min=0)]
Megabytes = Annotated[int | None, option("N", "Keep at most so much.", min=0)]


@cli.callback(invoke_without_command=True, no_args_is_help=False)
def calls(
    context: Context,
    session: Annotated[str | None, option("ID", "Only those of this session.")] = None,
    everything: Annotated[bool, option("--all", "Those made in other folders, too.")] = False,
    last: Annotated[int, option("N", "How many.", min=1)] = 30,
    as_json: Json = False,
) -> None:
    if context.invoked_subcommand is not None:
        return
    effects = open_runtime().effects
    found = effects.latest(last, session=session, folder="" if everything or session else folder_here())
    where = f"of session {session}" if session else "anywhere" if everything else "in this folder"
    more = "" if everything else "; `handrail calls --all` lists those made elsewhere"
    example = "`handrail call terminal command='touch x'` makes one."
    empty = f"No call {where} has changed anything yet{more}. {example}"
    views = [call_view(record, effects.keep_days) for record in found]
    rows = [call_row(record, effects.keep_days) for record in reversed(found)]
    emit_table(("CALL", "TOOL", "WHAT", "EFFECT", "UNDO"), rows, views, as_json=as_json, wide=2, empty=empty)


@cli.command()
def prune(days: Days = None, megabytes: Megabytes = None, dry_run: DryRun = False, as_json: Json = False) -> None:
    """Forget the oldest calls: they stay in the list, and cannot be undone any more.

    Without options, what `effects.keep_days` and `effects.keep_bytes` say.

    Examples:
      handrail calls prune --days 1 --dry-run
    """
    keep_bytes = None if megabytes is None else megabytes << 20
    told = open_runtime().effects.prune(keep_days=days, keep_bytes=keep_bytes, dry_run=dry_run)
    what = f"{counted(len(told['calls']), 'call')} {'would be forgotten' if dry_run else 'forgotten'}"
    text = f"{what}, {told['freed_bytes']:,} bytes freed, {told['kept_bytes']:,} kept."
    if not told["clock_is_trusted"]:
        text += "\nThe clock has jumped: nothing is forgotten for its age before it has run for a day."
    emit_either(told, text, as_json=as_json)
