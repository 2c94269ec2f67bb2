"""List, read, search, export, branch and delete sessions.

Examples:
  handrail sessions list
  handrail sessions show last
  handrail sessions search "the parser"
  handrail sessions export last --format sharegpt > trajectory.json
"""

import json
import os
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal

from ...agent.agent_factory import open_store
from ...errors import SessionNotFound
from ...store.export import as_jsonl, as_sharegpt, text_of
from ...store.search import search as find
from ...store.sessions import SessionInfo, SessionStore, StoredMessage
from ...types import JsonDict
from ..call_text import calls_of, shortened, when
from ..options import BadParameter, Exit, Json, argument, new_cli, option, session_ids
from ..output import ExitCode, emit_either, emit_table, emit_to, say, visible

cli = new_cli()
LAST = "last"
SessionId = Annotated[
    str, argument("[SESSION]", "Its id, the start of it, or `last`: the one used last.", autocompletion=session_ids)
]
_TITLE_CHARS, _RESULT_LINES = 60, 6
Limit = Annotated[int, option("--limit -n N", "How many.", min=1)]
InThisFolder = Annotated[bool, option("--here", "Only those of this folder.")]
Everything = Annotated[bool, option("--all", "Also what was undone or summarised.")]
SearchWords = Annotated[list[str], argument("TEXT...", "Words in any order; '\"in quotes\"' as it is.")]
Form = Annotated[
    Literal["jsonl", "sharegpt"], option("--format -f NAME", "jsonl (one line per message) or sharegpt (a trajectory).")
]
Output = Annotated[Path | None, option("--output -o FILE", "Write it there.")]
After = Annotated[int | None, option("--after MESSAGE", "Up to this message.")]
Sessions = Annotated[list[str], argument("SESSION...", "Their ids, or the starts of them.", autocompletion=session_ids)]


@cli.command("list")
def list_sessions(limit: Limit = 20, in_this_folder: InThisFolder = False, as_json: Json = False) -> None:
    """List the sessions, those used last first.

    Examples:
      handrail sessions list --here
      handrail sessions list --json | jq -r '.[].id'
    """
    found = open_store().recent(limit=limit, cwd=os.getcwd() if in_this_folder else None)
    headers = ("ID", "USED", "MODEL", "TOKENS", "COST", "ABOUT")
    empty = f"No sessions{' in this folder' if in_this_folder else ''} yet. `handrail chat` starts one."
    views, rows = map(session_view, found), map(session_row, found)
    emit_table(headers, [*rows], [*views], as_json=as_json, wide=5, empty=empty)


@cli.command()
def show(session: SessionId = LAST, everything: Everything = False, as_json: Json = False) -> None:
    """Print a conversation.

    Examples:
      handrail sessions show
      handrail sessions show 20260703-1412 --all
    """
    store = open_store()
    info = chosen(store, session)
    messages = store.messages(info.id, hidden=everything)
    views = [{"id": each.id, "at": each.at, **each.message} for each in messages]
    text = "\n\n".join([f"{info.id} · {info.model} · {info.cwd}", *map(message_text, messages)])
    emit_either({**session_view(info), "messages": views}, text, as_json=as_json)


@cli.command()
def search(words: SearchWords, limit: Limit = 10, as_json: Json = False) -> None:
    """Find messages of all sessions by words, or by a piece of text.

    Examples:
      handrail sessions search "read_config(path)"
      handrail sessions search deploy friday

    Exit codes: 0 something was found, 1 nothing.
    """
    hits = find(open_store(), " ".join(words), limit=limit)
    lines = []
    for hit in hits:
        lines.append(f"{hit.session} · {when(hit.at)} · {hit.role} · {visible(hit.title)}")
        lines.append(f"    {visible(' '.join(hit.excerpt.split()))}")
    if hits or as_json:
        emit_either([hit._asdict() for hit in hits], "\n".join(lines), as_json=as_json)
    if not hits:
        say("nothing was found")
    raise Exit(ExitCode.OK if hits else ExitCode.FAILED)


@cli.command()
def export(session: SessionId = LAST, form: Form = "jsonl", output: Output = None) -> None:
    """Print a session for other programs: JSON lines, or a ShareGPT-style trajectory.

    Examples:
      handrail sessions export last > session.jsonl
      handrail sessions export 20260703 --format sharegpt -o trajectory.json
    """
    store = open_store()
    info = chosen(store, session)
    if form == "jsonl":
        text = "\n".join(as_jsonl(store, info.id))
    else:
        text = json.dumps(as_sharegpt(store, info.id), ensure_ascii=False)
    emit_to(output, f"{text}\n")
    if output is not None:
        say(f"{info.id} is in {output}")


@cli.command()
def branch(session: SessionId = LAST, after: After = None, as_json: Json = False) -> None:
    """Start a new session from a copy of another one. Both stay.

    Examples:
      handrail sessions branch last
      handrail sessions branch 20260703 --after 412
      handrail chat --resume $(handrail sessions branch last)
    """
    store = open_store()
    info = chosen(store, session)
    if after is not None and after not in {each.id for each in store.messages(info.id, hidden=True)}:
        how = f"`handrail sessions show {info.id}` shows the numbers"
        raise BadParameter(f"{info.id} has no message {after}; {how}")
    made = store.branch(info.id, after=after)
    emit_either(session_view(made), made.id, as_json=as_json)


@cli.command()
def delete(sessions: Sessions) -> None:
    """Delete sessions, with those of their child agents."""
    store = open_store()
    for info in [store.get(session) for session in sessions]:
        store.delete(info.id)
        say(f"{info.id} is deleted")


def chosen(store: SessionStore, session: str) -> SessionInfo:
    """Raises SessionNotFound."""
    if session != LAST:
        return store.get(session)
    if not (latest := store.recent(limit=1)):
        raise SessionNotFound("there is no session yet; `handrail chat` starts one")
    return latest[0]


def session_view(info: SessionInfo) -> JsonDict:
    return {**info._asdict(), "created": _exactly(info.created), "updated": _exactly(info.updated)}


def session_row(info: SessionInfo) -> tuple[str, ...]:
    tokens = f"{info.input_tokens + info.output_tokens:,}"
    title = shortened(visible(info.title), _TITLE_CHARS) or "(empty)"
    return info.id, when(info.updated), visible(info.model), tokens, cost(info.cost), title


def message_text(stored: StoredMessage) -> str:
    """One message and its role. A long result is cut: `sessions export` has all of it."""
    message = stored.message
    lines = [f"── {_speaker(message)} · {when(stored.at)} · {stored.id}"]
    text = visible(text_of(message)).rstrip()
    if message["role"] == "tool":
        whole = text.splitlines()
        text = "\n".join(shortened(line, 200) for line in whole[:_RESULT_LINES])
        if len(whole) > _RESULT_LINES:
            text += f"\n[... {len(whole) - _RESULT_LINES} more lines]"
    if text:
        lines.append(text)
    lines += [f"→ {shortened(visible(call), 200)}" for call in calls_of(message)]
    return "\n".join(lines)


def _exactly(at: float) -> str:
    return datetime.fromtimestamp(at).astimezone().isoformat(timespec="seconds")


def cost(dollars: float | None) -> str:
    return "" if dollars is None else f"${dollars:.4f}"


def _speaker(message: JsonDict) -> str:
    if message["role"] == "tool":
        return f"result of {visible(str(message.get('name', '')))}"
    if message.get("added_by"):
        return "handrail"
    return {"user": "you", "assistant": "agent"}.get(message["role"], str(message["role"]))
