"""See what waits for an answer, and answer it; take back what was allowed; look at what was decided.

A question that an agent's runtime asks can be answered from any terminal of yours, once: whoever is first decides.

\b
Examples:
  handrail approvals list
  handrail approvals answer 3f9c once
  handrail approvals log --last 50
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from .. import exit_codes, options

if TYPE_CHECKING:
    from ...store.approvals import ApprovalStore


cli = options.new_cli()


@cli.command("list")
def list_waiting(as_json: options.Json = False) -> None:
    """List the questions that wait for an answer, and what is allowed for longer than once.

    \b
    Examples:
      handrail approvals list
      handrail approvals list --json | jq -r '.waiting[].id'
    """
    from ...config import load_config
    from ..approval_views import grant_row, grant_view, request_view, show_request
    from ..output import emit, emit_json, emit_table

    store = open_store()
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
        emit("Nothing waits for an answer.")
    if grants or always:
        emit("")
        rows = [grant_row(grant) for grant in grants]
        rows += [(key, "every session", "until it is revoked", key) for key in always]
        emit_table(("REVOKE WITH", "ALLOWED IN", "HOLDS", "KIND"), rows, wide=3)


@cli.command()
def answer(
    request: Annotated[str, typer.Argument(metavar="ID", help="The request, or the beginning of its id.")],
    decision: Annotated[
        str, typer.Argument(metavar="ANSWER", help="once, task, session, always or deny; without it you are asked.")
    ] = "",
    as_json: options.Json = False,
) -> None:
    """Answer a question that waits. The first answer holds; one that comes later is told so.

    A yes needs a terminal, and a shell that no agent started.

    \b
    Examples:
      handrail approvals answer 3f9c
      handrail approvals answer 3f9c once
      handrail approvals answer 3f9c deny

    Exit codes: 0 it holds, 1 it came too late, 2 no such request or answer, 3 not allowed from here.
    """
    from ...protocols import Answer, Decision
    from ..approval_answers import chosen, come_too_late, refuse_inside
    from ..output import emit_json, say

    refuse_inside("answer requests")
    store = open_store()
    stored = store.get(request)
    made = chosen(stored, decision)
    if made is None:
        raise typer.Exit(exit_codes.ExitCode.FAILED)
    before = store.answer(stored.request.id, Answer(made, "cli"))
    if as_json:
        emit_json({"id": stored.request.id, "decision": made.value, "holds": before is None})
    if before is not None:
        say(come_too_late(before))
        raise typer.Exit(exit_codes.ExitCode.FAILED)
    say(f"{stored.request.id}: {'denied' if made is Decision.DENY else 'allowed, ' + made.value}")
    if not stored.is_waiting:
        say("the process that asked is gone; the answer holds if the same is asked again before the time is over")


@cli.command()
def revoke(
    grant: Annotated[str, typer.Argument(metavar="GRANT", help="Its number, or the kind that is always allowed.")],
) -> None:
    """Take back what was allowed for longer than once. Running calls notice with their next action.

    \b
    Examples:
      handrail approvals revoke 4
      handrail approvals revoke fs.rm.recursive@project:/srv/app
    """
    from ...approval.settings import remove_from_allowlist
    from ...config import config_path
    from ..approval_answers import refuse_inside
    from ..output import say

    refuse_inside("revoke grants")
    taken = open_store().grants.revoke(int(grant)) if grant.isascii() and grant.isdigit() else None
    if taken is None and not remove_from_allowlist(config_path(), grant):
        say(f"nothing is allowed as {grant!r}; `handrail approvals list` shows what is")
        raise typer.Exit(exit_codes.ExitCode.USAGE)
    say(f"{taken.key if taken else grant} asks again")


@cli.command()
def log(
    last: Annotated[int, typer.Option("--last", metavar="N", min=1, help="How many of the newest.")] = 20,
    as_json: options.Json = False,
) -> None:
    """Show who decided what, by which rule, and how long it took; the newest last.

    \b
    Examples:
      handrail approvals log
      handrail approvals log --last 1000 --json | jq 'group_by(.by) | map({by: .[0].by, n: length})'
    """
    from ..approval_views import decision_row, decision_view
    from ..output import emit, emit_json, emit_table

    decisions = open_store().decisions.latest(last)
    if as_json:
        emit_json([decision_view(record) for record in decisions])
    elif decisions:
        rows = [decision_row(record) for record in decisions]
        emit_table(("WHEN", "DECISION", "BY", "TOOK", "KIND", "WHAT"), rows, wide=5)
    else:
        emit("Nothing was decided yet.")


@cli.command()
def simulate(
    policy: Annotated[str, typer.Argument(metavar="POLICY.yaml", help="A configuration to try: its approvals count.")],
    changed: Annotated[bool, typer.Option("--changed", help="Only what would be decided otherwise.")] = False,
    as_json: options.Json = False,
) -> None:
    """Try a policy on what really happened: every recorded action is judged again, and nothing runs.

    The history is what passed the gate; `approvals.history_max_bytes` says how much of it is kept.

    \b
    Examples:
      handrail approvals simulate stricter.yaml
      handrail approvals simulate stricter.yaml --changed --json
    """
    from ...approval.simulation import simulated
    from ..approval_views import show_simulation

    show_simulation(simulated(policy), only_changed=changed, as_json=as_json)


def open_store() -> ApprovalStore:
    from ...approval.gate import STORE_NAME
    from ...config import state_dir
    from ...store.approvals import ApprovalStore

    return ApprovalStore(state_dir() / STORE_NAME)
