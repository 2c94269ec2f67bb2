"""Shortening, branching and deleting leave what they should; a store of an earlier version goes on."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from handrail.errors import SessionNotFound
from handrail.store import sessions
from handrail.store.database import Database, read_steps
from handrail.store.export import as_jsonl, as_sharegpt
from handrail.store.search import search, window
from handrail.store.sessions import CHILD, SessionInfo, SessionStore, StoredCall, StoredModelCall
from handrail.testing import call

STEPS = read_steps(Path(sessions.__file__).with_suffix(".sql"))


@pytest.fixture
def store(tmp_path: Path) -> Any:
    store = SessionStore(tmp_path / "sessions.db")
    yield store
    store.close()


def begin(store: SessionStore, *texts: str, **more: Any) -> SessionInfo:
    info = store.create(**{"platform": "cli", "model": "m", "cwd": "/w", **more})
    store.append(info.id, [said(text) for text in texts])
    return info


def said(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def texts(store: SessionStore, session_id: str, **more: Any) -> list[str]:
    return [each.message["content"] for each in store.messages(session_id, **more)]


def shorten(store: SessionStore, session_id: str, summary: str, keep: int) -> None:
    """As a conversation does it: a summary, and the last messages again."""
    stored = store.messages(session_id)
    kept = [each.message for each in stored[len(stored) - keep :]]
    store.append(session_id, [said(summary), *kept], instead_of=[each.id for each in stored], copies=keep)


def test_a_branch_keeps_its_beginning_when_the_other_is_shortened_or_undone(store: SessionStore) -> None:
    info = begin(store, "one", "two", "three")
    begin(store, "of another session")
    branch = store.branch(info.id)
    shorten(store, info.id, "sum", keep=1)
    assert texts(store, info.id) == ["sum", "three"]
    assert texts(store, branch.id) == ["one", "two", "three"]
    later = store.branch(info.id)
    store.hide(info.id, [store.messages(info.id)[-1].id])
    assert texts(store, info.id) == ["sum"]
    assert texts(store, later.id) == ["sum", "three"]
    assert texts(store, store.branch(later.id).id) == ["sum", "three"]


def test_a_branch_of_an_undone_conversation_begins_as_it_is_now(store: SessionStore) -> None:
    info = begin(store, "one", "two")
    store.hide(info.id, [store.messages(info.id)[-1].id])
    begin(store, "of another session")
    assert texts(store, store.branch(info.id).id) == ["one"]


def test_what_was_shortened_is_found_once(store: SessionStore) -> None:
    info = begin(store, "a marmalade sandwich", "another marmalade")
    shorten(store, info.id, "they talked of food", keep=1)
    assert len(search(store, "marmalade")) == 2
    first = min(hit.message_id for hit in search(store, "marmalade"))
    assert [each.message["content"] for each in window(store, first)] == [
        "a marmalade sandwich",
        "another marmalade",
        "they talked of food",
    ]
    assert texts(store, info.id, hidden=True) == ["a marmalade sandwich", "another marmalade", "they talked of food"]
    store.delete(info.id)
    assert search(store, "marmalade") == []
    other = begin(store, "marmalade again")
    assert [hit.session for hit in search(store, "marmalade")] == [other.id]


def test_children_go_with_their_session_and_a_kept_parent_with_its_last_branch(store: SessionStore) -> None:
    info = begin(store, "parent words")
    child = begin(store, "child words", kind=CHILD, parent=info.id)
    store.append(child.id, [], calls=[StoredCall("terminal", "c", {}, 1.0, 1.0, "")])
    branch = store.branch(info.id)
    store.delete(info.id)
    with pytest.raises(SessionNotFound):
        store.get(child.id)
    with pytest.raises(SessionNotFound):
        store.get(info.id)
    assert texts(store, branch.id) == ["parent words"]
    store.delete(branch.id)
    for table in ("sessions", "messages", "calls", "model_calls"):
        assert store.rows(f"SELECT count(*) FROM {table}")[0][0] == 0
    assert search(store, "words") == []


def test_what_each_question_to_a_model_took_is_kept(store: SessionStore) -> None:
    info = begin(store)
    asked = StoredModelCall(1.0, 0.5, "m", 10, 2, 4, 0.25)
    store.append(info.id, [said("x")], asked=asked)
    failed = StoredModelCall(2.0, 0.1, "m", error="429")
    store.append(info.id, [], asked=failed)
    assert store.model_calls(info.id) == [asked, failed]
    assert store.get(info.id)[-3:] == (10, 2, 0.25)


def test_a_session_among_many_is_found_by_its_whole_id(store: SessionStore) -> None:
    info = begin(store)
    store.rows("SELECT 1")
    longer = info._replace(id=f"{info.id}0")
    store._inserted(longer)
    assert store.get(info.id).id == info.id
    with pytest.raises(SessionNotFound, match="more than one"):
        store.get(info.id[:-1])


# Versions


@pytest.mark.parametrize("version", range(1, len(STEPS)))
def test_a_store_of_an_earlier_version_goes_on(tmp_path: Path, version: int) -> None:
    path = tmp_path / "sessions.db"
    old = Database(path, STEPS[:version])
    with old.transaction() as connection:
        row = SessionInfo("20260101-000000-abcdef", 1.0, 2.0, "old", "cli", "m", "/w", None, None, "main", 1, 2, None)
        connection.execute(f"INSERT INTO sessions VALUES ({', '.join('?' * len(row))})", row)
        for hidden, text in enumerate(("kept from long ago", "was undone")):
            body = json.dumps(said(text))
            number = connection.execute(
                "INSERT INTO messages (session, at, role, body, hidden) VALUES (?, 1.0, 'user', ?, ?)",
                (row.id, body, hidden),
            ).lastrowid
            for table in ("words", "pieces"):
                connection.execute(f"INSERT INTO {table} (rowid, text) VALUES (?, ?)", (number, text))
        connection.execute("INSERT INTO calls VALUES (1, ?, 'c1', 'terminal', '{}', 1.0, 2.0, '')", (row.id,))
    old.close()
    store = SessionStore(path)
    assert texts(store, row.id) == ["kept from long ago"]
    assert [hit.session for hit in search(store, "long ago")] == [row.id]
    assert [each.tool for each in store.calls(row.id)] == ["terminal"]
    store.append(row.id, [said("goes on")], asked=StoredModelCall(1.0, 1.0, "m", 5, 5))
    assert texts(store, store.branch(row.id).id) == ["kept from long ago", "goes on"]
    store.close()
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone()[0] == len(STEPS)
    connection.close()


SHORTENER = """
import sys
from pathlib import Path
from handrail.agent.conversation import Conversation
from handrail.store.sessions import SessionStore
store = SessionStore(Path(sys.argv[1]))
conversation = Conversation(store, store.get(sys.argv[2]))
for number in range(100_000):
    conversation.replace(5, [{"role": "user", "content": f"summary {number}"}, *conversation.messages[1:5]], new=1)
    print(number, flush=True)
"""


def test_a_crash_while_a_conversation_is_shortened_loses_nothing(store: SessionStore, tmp_path: Path) -> None:
    info = begin(store, "first", *(f"kept {number}" for number in range(20)))
    command = [sys.executable, "-c", SHORTENER, str(tmp_path / "sessions.db"), info.id]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as shortener:
        assert shortener.stdout is not None
        for line in shortener.stdout:
            if int(line) >= 5:
                os.kill(shortener.pid, signal.SIGKILL)
                break
        shortener.stdout.read()
    found = texts(store, info.id)
    assert found[0].startswith("summary ")
    assert found[1:] == [f"kept {number}" for number in range(20)]


# Export


def test_a_session_is_exported_a_line_a_message(store: SessionStore) -> None:
    info = begin(store, "hello", title="greetings")
    store.append(info.id, [{"role": "assistant", "content": "hi ☕"}])
    lines = [json.loads(line) for line in as_jsonl(store, info.id)]
    assert lines[0]["session"]["title"] == "greetings"
    assert [(line["role"], line["content"]) for line in lines[1:]] == [("user", "hello"), ("assistant", "hi ☕")]


def test_a_trajectory_has_calls_and_results_in_tags(store: SessionStore) -> None:
    info = begin(store, "look")
    calls = [call("read_file", "c1", path="a"), call("read_file", "c2", path="b")]
    store.append(
        info.id,
        [
            {"role": "assistant", "content": "I look.", "tool_calls": calls},
            {"role": "tool", "tool_call_id": "c1", "name": "read_file", "content": "A"},
            {"role": "tool", "tool_call_id": "c2", "name": "read_file", "content": "B"},
            {"role": "assistant", "content": [{"type": "text", "text": "Both."}, {"type": "image_url"}]},
        ],
    )
    turns = as_sharegpt(store, info.id)["conversations"]
    assert [turn["from"] for turn in turns] == ["human", "gpt", "tool", "gpt"]
    assert turns[1]["value"].startswith('I look.\n<tool_call>\n{"name": "read_file", "arguments": {"path": "a"}}')
    assert turns[2]["value"].count("<tool_response>") == 2
    assert turns[3]["value"] == "Both.\n[image_url]"


def test_messages_that_are_repeated_after_a_summary_are_as_old_as_they_were(store: SessionStore) -> None:
    info = begin(store, "one", "two", "three")
    before = [each.at for each in store.messages(info.id)]
    shorten(store, info.id, "sum", keep=2)
    summary, *kept = store.messages(info.id)
    assert [each.at for each in kept] == before[1:]
    assert summary.at > before[-1]
