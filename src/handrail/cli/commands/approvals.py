"""List, answer and revoke approvals; see what was decided.

A request can be answered from any terminal of yours; the first answer counts.

Examples:
  handrail approvals list
  handrail approvals answer 3f9c once
  handrail approvals log --last 50
"""

import time
from datetime import UTC, datetime
from typing import Annotated

from ...approval.approvers.prompt import allowed
from ...approval.display import visible
from ...approval.policy import read_policy
from ...approval.records import counts_of, simulate_policy
from ...approval.settings import add_to_allowlist, remove_from_allowlist
from ...approval.suggestions import Suggester, Suggestions
from ...config.paths import config_path, state_dir
from ...config.store import Confirmed, load_config
from ...errors import InvalidArguments
from ...protocols import Decision
from ...store.approvals import DecisionRecord, StoredGrant, StoredRequest
from ...types import JsonDict
from ..approvals import chosen, come_too_late, open_approvals, show_request
from ..call_text import when
from ..options import Exit, Json, argument, new_cli, option
from ..output import ExitCode, as_typed, emit, emit_json, emit_table, fitted, refuse, say

cli = new_cli()
_ALL = 1_000_000
_SHORT_TEXT = 200
# How much of a request's id has to be given to answer it.
_MIN_ID = 4
Request = Annotated[str, argument("ID", "The request's id, or the start of it.")]
AnswerDecision = Annotated[
    str, argument("ANSWER", "once, try, task, session, always or deny; without it you are asked.")
]
Why = Annotated[str, option("--why TEXT", "The reason, or what to do instead; the model reads it.")]
Last = Annotated[int, option("--last N", "How many decisions to show.", min=1)]
Policy = Annotated[str, argument("POLICY.yaml", "A configuration file, whose approval settings are tried.")]
SimulateChanged = Annotated[bool, option("--changed", "Only what would be decided differently.")]
SuggestLast = Annotated[int, option("--last N", "How many of your newest answers.", min=1)]
Accept = Annotated[list[str] | None, option("--accept ID", "Write this rule to config.yaml; can be repeated.")]


@cli.command("list")
def list_waiting(as_json: Json = False) -> None:
    """List the questions that wait for an answer, and what is allowed for longer than once.

    Examples:
      handrail approvals list --json | jq -r '.waiting[].id'
    """
    store = open_approvals()
    waiting, grants, always = store.pending(), store.grants.all(), load_config().command_allowlist
    if as_json:
        views = {"waiting": [*map(_request_view, waiting)], "grants": [*map(_grant_view, grants)]}
        emit_json({**views, "always": list(always)})
        return
    for stored in waiting:
        show_request(stored)
    if not waiting:
        emit(fitted(as_typed("No requests are pending. `handrail approvals log` shows what was decided.")))
    if grants or always:
        emit("")
        rows = [_grant_row(grant) for grant in grants]
        rows += [(key, "every session", "until it is revoked", key) for key in always]
        emit_table(("REVOKE WITH", "ALLOWED IN", "HOLDS", "KIND"), rows, wide=3)


@cli.command()
def show(request: Request, as_json: Json = False) -> None:
    """Show one request with all that it would run or write."""
    stored = open_approvals().get(request)
    emit_json(_request_view(stored)) if as_json else show_request(stored, in_full=True)


@cli.command()
def answer(request: Request, decision: AnswerDecision = "", why: Why = "", as_json: Json = False) -> None:
    """Answer a pending request. The first answer counts; a later one is refused.

    Approving needs a terminal, and a shell that no agent started.

    Examples:
      handrail approvals answer 3f9c
      handrail approvals answer 3f9c deny --why 'move it to trash/ instead'

    Exit codes: 0 accepted, 1 it came too late, 2 no such request or answer, 3 not allowed from here.
    """
    if len(request) < _MIN_ID:
        how = f"give at least {_MIN_ID} characters of its id"
        raise InvalidArguments(f"{request!r} could be another request by now; {how}")
    store = open_approvals()
    stored = store.get(request)
    if (made := chosen(stored, decision)) is None:
        raise Exit(ExitCode.FAILED)
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
def revoke(grant: Annotated[str, argument("GRANT", "Its number, or the kind that is always allowed.")]) -> None:
    """Revoke what was allowed for longer than once. Running calls ask again from their next action on.

    Examples:
      handrail approvals revoke 4
      handrail approvals revoke fs.rm.recursive@project:/srv/app
    """
    taken = open_approvals().grants.revoke(int(grant)) if grant.isascii() and grant.isdigit() else None
    if taken is None and not remove_from_allowlist(config_path(), grant):
        refuse(f"nothing is allowed as {grant!r}; `handrail approvals list` shows what is")
    say(f"{taken.key if taken else grant} asks again")


@cli.command()
def log(last: Last = 20, as_json: Json = False) -> None:
    """Show who decided what, by which rule, and how long it took; the newest last.

    Examples:
      handrail approvals log
      handrail approvals log --last 1000 --json | jq -r '.[].by' | sort | uniq -c
    """
    decisions = open_approvals().decisions.latest(last)
    empty = "No decisions yet. `handrail check 'rm -rf build'` shows what would be asked."
    headers = ("WHEN", "DECISION", "BY", "TOOK", "KIND", "WHAT")
    views = [{**each._asdict(), "keys": list(each.keys), "at": _when(each.at)} for each in decisions]
    emit_table(headers, [*map(_decision_row, decisions)], views, as_json=as_json, wide=5, empty=empty)


@cli.command()
def simulate(policy: Policy, changed: SimulateChanged = False, as_json: Json = False) -> None:
    """Try a policy on what really happened: every recorded action is judged again, and nothing runs.

    The history is what passed the gate; `approvals.history_max_bytes` says how much of it is kept.

    Examples:
      handrail approvals simulate stricter.yaml
      handrail approvals simulate stricter.yaml --changed --json
    """
    trials = simulate_policy(policy, state_dir=state_dir())
    counts, shown = counts_of(trials), [trial for trial in trials if trial.is_changed or not changed]
    if as_json:
        emit_json({"counts": counts, "trials": [trial._asdict() for trial in shown]})
        return
    rows = [
        (f"{trial.was} → {trial.would}", visible(" ".join(trial.rules)), visible(trial.text, max_chars=_SHORT_TEXT))
        for trial in shown
        if trial.is_changed
    ]
    if rows:
        emit_table(("WAS → WOULD BE", "RULES", "WHAT"), rows, wide=2)
        emit("")
    emit(f"{counts['actions']} actions: {counts['changed']} would be decided otherwise.")
    emit(f"allowed {counts['allow']}, asked {counts['ask']}, denied {counts['deny']}.")


@cli.command()
def suggest(last: SuggestLast = 1000, accept: Accept = None, as_json: Json = False) -> None:
    """Suggest the fewest narrow rules that would have answered your questions as you did.

    No rule allows anything that you have denied before. Each is shown with the riskiest commands that it would also allow.

    Examples:
      handrail approvals suggest
      handrail approvals suggest --last 200 --json
      handrail approvals suggest --accept 3f9c21
    """
    decisions = open_approvals().decisions.latest(_ALL)
    found = Suggester(read_policy(load_config()), state_dir=state_dir(), decisions=decisions).suggest(last)
    if not accept:
        _show_suggestions(found, as_json=as_json)
        return
    rules = {rule.id: rule for rule in found.rules if rule.id in accept}
    if unknown := sorted(set(accept) - set(rules)):
        raise InvalidArguments(f"no suggestion {', '.join(unknown)}; `handrail approvals suggest` lists them")
    keys = [rule.rule for rule in rules.values() if rule.setting == "command_allowlist"]
    commands = [rule.rule for rule in rules.values() if rule.rule not in keys]
    add_to_allowlist(config_path(), keys, Confirmed(state_dir()), commands=commands)
    if as_json:
        accepted = [{"id": each.id, "setting": each.setting, "rule": each.rule} for each in rules.values()]
        emit_json({"accepted": accepted})
    for rule in rules.values():
        say(f"{rule.setting} has {visible(rule.rule)} now")


def _request_view(stored: StoredRequest) -> JsonDict:
    request = stored.request
    return {
        **{name: getattr(request, name) for name in ("id", "tool", "text", "preview", "cwd", "environment")},
        "kind": request.kind.value,
        "session": request.session_id,
        "task": request.task_id,
        "concerns": [concern._asdict() for concern in request.concerns],
        "offers": [decision.value for decision in request.offers],
        "asked_at": _when(stored.created),
        "expires_at": _when(request.expires_at),
        "is_waiting": stored.is_waiting,
    }


def _grant_view(grant: StoredGrant) -> JsonDict:
    return {
        **{name: getattr(grant, name) for name in ("id", "scope", "key", "by", "uses_left")},
        "granted_at": _when(grant.created),
        "expires_at": None if grant.expires is None else _when(grant.expires),
    }


def _grant_row(grant: StoredGrant) -> tuple[str, str, str, str]:
    kind, _, name = grant.scope.partition(":")
    where = "one process" if kind == "process" else f"{kind} {name}"
    bounds = []
    if grant.expires is not None:
        bounds.append(f"{max(0, round((grant.expires - time.time()) / 60))} more minutes")
    if grant.uses_left is not None:
        bounds.append(f"{grant.uses_left} more times")
    return str(grant.id), visible(where), ", ".join(bounds) or "until it ends", visible(grant.key)


def _decision_row(record: DecisionRecord) -> tuple[str, str, str, str, str, str]:
    took = f"{record.seconds:.1f} s" if record.seconds else ""
    text = visible(record.text, max_chars=_SHORT_TEXT)
    return when(record.at), record.decision, record.by, took, visible(" ".join(record.keys)), text


def _show_suggestions(found: Suggestions, *, as_json: bool) -> None:
    if as_json:
        rules = [{**rule._asdict(), "also_allows": [each.command for each in rule.also_allows]} for rule in found.rules]
        emit_json({**found._asdict(), "rules": rules})
        return
    for rule in found.rules:
        newest, of = rule.held_back
        riskiest = "".join(f"\n      {visible(each.command)}" for each in rule.also_allows)
        emit(f"{rule.id}  {visible(rule.rule)}")
        emit(f"    in {rule.setting}; answers {rule.answered} of {found.questions} questions as you did")
        held_back = f"it answers {newest}, and none that you denied"
        emit(f"    of the newest {of}, which were not looked at to find it, {held_back}")
        if rule.provoked:
            emit(f"    CAREFUL: an agent could have brought this about by asking: {rule.provoked}")
        emit(f"    the riskiest that it also allows:{riskiest}")
    emit(f"{len(found.rules)} rules would have answered {found.answered} of your last {found.questions} questions.")


def _when(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")
