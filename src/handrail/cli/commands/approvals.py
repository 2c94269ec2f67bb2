"""List, answer and revoke approvals; see what was decided.

A request can be answered from any terminal of yours; the first answer counts.

\b
Examples:
  handrail approvals list
  handrail approvals answer 3f9c once
  handrail approvals log --last 50
"""

from __future__ import annotations

from typing import Annotated

import typer

from ...approval.approvers.prompt import allowed
from ...approval.display import visible
from ...approval.policy import read_policy
from ...approval.records import simulate_policy
from ...approval.settings import add_to_allowlist, remove_from_allowlist
from ...approval.suggestions import Suggester
from ...config import config_path, load_config, state_dir
from ...config.store import Confirmed
from ...errors import InvalidArguments
from ...protocols import Decision
from .. import options
from ..approvals import (
    chosen,
    come_too_late,
    decision_row,
    decision_view,
    grant_row,
    grant_view,
    open_approvals,
    request_view,
    show_request,
    show_simulation,
    show_suggestions,
)
from ..output import ExitCode, as_typed, emit, emit_json, emit_listing, emit_table, refuse, say

cli = options.new_cli()
_ALL = 1_000_000
# How much of a request's id has to be given to answer it.
_MIN_ID = 4


@cli.command("list")
def list_waiting(as_json: options.Json = False) -> None:
    """List the questions that wait for an answer, and what is allowed for longer than once.

    \b
    Examples:
      handrail approvals list
      handrail approvals list --json | jq -r '.waiting[].id'
    """
    store = open_approvals()
    waiting, grants, always = store.pending(), store.grants.all(), load_config().command_allowlist
    if as_json:
        emit_json(
            {
                "waiting": [request_view(stored) for stored in waiting],
                "grants": [grant_view(grant) for grant in grants],
                "always": list(always),
            }
        )
        return
    for stored in waiting:
        show_request(stored)
    if not waiting:
        emit(as_typed("No requests are pending. `handrail approvals log` shows what was decided."))
    if grants or always:
        emit("")
        rows = [grant_row(grant) for grant in grants]
        rows += [(key, "every session", "until it is revoked", key) for key in always]
        emit_table(("REVOKE WITH", "ALLOWED IN", "HOLDS", "KIND"), rows, wide=3)


@cli.command()
def show(
    request: Annotated[str, typer.Argument(metavar="ID", help="The request's id, or the start of it.")],
    as_json: options.Json = False,
) -> None:
    """Show one request with all that it would run or write.

    \b
    Examples:
      handrail approvals show 3f9c
    """
    stored = open_approvals().get(request)
    if as_json:
        emit_json(request_view(stored))
    else:
        show_request(stored, in_full=True)


@cli.command()
def answer(
    request: Annotated[str, typer.Argument(metavar="ID", help="The request's id, or the start of it.")],
    decision: Annotated[
        str,
        typer.Argument(metavar="ANSWER", help="once, try, task, session, always or deny; without it you are asked."),
    ] = "",
    why: Annotated[
        str, typer.Option("--why", metavar="TEXT", help="The reason, or what to do instead; the model reads it.")
    ] = "",
    as_json: options.Json = False,
) -> None:
    """Answer a pending request. The first answer counts; a later one is refused.

    Approving needs a terminal, and a shell that no agent started.

    \b
    Examples:
      handrail approvals answer 3f9c
      handrail approvals answer 3f9c once
      handrail approvals answer 3f9c deny --why 'move it to trash/ instead'

    Exit codes: 0 accepted, 1 it came too late, 2 no such request or answer, 3 not allowed from here.
    """
    if len(request) < _MIN_ID:
        raise InvalidArguments(
            f"{request!r} could be another request by now; give at least {_MIN_ID} characters of its id"
        )
    store = open_approvals()
    stored = store.get(request)
    made = chosen(stored, decision)
    if made is None:
        raise typer.Exit(ExitCode.FAILED)
    decided = made.decision
    before = store.answer(stored.request.id, made if decided.allows else made._replace(why=why or made.why))
    if as_json:
        emit_json({"id": stored.request.id, "decision": decided.value, "holds": before is None})
    if before is not None:
        refuse(come_too_late(before), ExitCode.FAILED)
    said = f"Denied: {stored.request.text}" if decided is Decision.DENY else allowed(stored.request, decided)
    said = f"Changed to: {made.edited}" if made.edited else said
    say(f"{stored.request.id}: {visible(said)}")
    if not stored.is_waiting:
        say("the process that asked has exited; the answer holds if the same is asked again before it expires")


@cli.command()
def revoke(
    grant: Annotated[str, typer.Argument(metavar="GRANT", help="Its number, or the kind that is always allowed.")],
) -> None:
    """Revoke what was allowed for longer than once. Running calls notice with their next action.

    \b
    Examples:
      handrail approvals revoke 4
      handrail approvals revoke fs.rm.recursive@project:/srv/app
    """
    taken = open_approvals().grants.revoke(int(grant)) if grant.isascii() and grant.isdigit() else None
    if taken is None and not remove_from_allowlist(config_path(), grant):
        refuse(f"nothing is allowed as {grant!r}; `handrail approvals list` shows what is")
    say(f"{taken.key if taken else grant} asks again")


@cli.command()
def log(
    last: Annotated[int, typer.Option("--last", metavar="N", min=1, help="How many decisions to show.")] = 20,
    as_json: options.Json = False,
) -> None:
    """Show who decided what, by which rule, and how long it took; the newest last.

    \b
    Examples:
      handrail approvals log
      handrail approvals log --last 1000 --json | jq 'group_by(.by) | map({by: .[0].by, n: length})'
    """
    decisions = open_approvals().decisions.latest(last)
    empty = "No decisions yet. `handrail check 'rm -rf build'` shows what would be asked."
    headers = ("WHEN", "DECISION", "BY", "TOOK", "KIND", "WHAT")
    views, rows = map(decision_view, decisions), map(decision_row, decisions)
    emit_listing([*views], headers, [*rows], as_json=as_json, wide=5, empty=empty)


@cli.command()
def simulate(
    policy: Annotated[str, typer.Argument(metavar="POLICY.yaml", help="A configuration to try: its approvals count.")],
    changed: Annotated[bool, typer.Option("--changed", help="Only what would be decided differently.")] = False,
    as_json: options.Json = False,
) -> None:
    """Try a policy on what really happened: every recorded action is judged again, and nothing runs.

    The history is what passed the gate; `approvals.history_max_bytes` says how much of it is kept.

    \b
    Examples:
      handrail approvals simulate stricter.yaml
      handrail approvals simulate stricter.yaml --changed --json
    """
    show_simulation(simulate_policy(policy, state_dir=state_dir()), only_changed=changed, as_json=as_json)


@cli.command()
def suggest(
    last: Annotated[int, typer.Option("--last", metavar="N", min=1, help="How many of your newest answers.")] = 1000,
    accept: Annotated[
        list[str] | None,
        typer.Option("--accept", metavar="ID", help="Write this rule to config.yaml; can be repeated."),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Suggest the fewest narrow rules that would have answered your questions as you did.

    None allows what you ever denied. Each is shown with the riskiest commands that it would also allow.

    \b
    Examples:
      handrail approvals suggest
      handrail approvals suggest --last 200 --json
      handrail approvals suggest --accept 3f9c21
    """
    decisions = open_approvals().decisions.latest(_ALL)
    found = Suggester(read_policy(load_config()), state_dir=state_dir(), decisions=decisions).suggest(last)
    if not accept:
        show_suggestions(found, as_json=as_json)
        return
    rules = {rule.id: rule for rule in found.rules if rule.id in accept}
    if unknown := sorted(set(accept) - set(rules)):
        raise InvalidArguments(f"no suggestion {', '.join(unknown)}; `handrail approvals suggest` lists them")
    keys = [rule.rule for rule in rules.values() if rule.setting == "command_allowlist"]
    commands = [rule.rule for rule in rules.values() if rule.rule not in keys]
    add_to_allowlist(config_path(), keys, Confirmed(state_dir()), commands=commands)
    if as_json:
        emit_json(
            {"accepted": [{"id": rule.id, "setting": rule.setting, "rule": rule.rule} for rule in rules.values()]}
        )
    for rule in rules.values():
        say(f"{rule.setting} has {visible(rule.rule)} now")
