"""Sessions on disk: what was said is there, whoever wrote it and however the writer ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from handrail.errors import SessionNotFound, StoreError
from handrail.store.search import search, window
from handrail.store.sessions import CHILD, SessionInfo, SessionStore, StoredCall, StoredModelCall
from tests.support import in_threads


@pytest.fixture
def store(tmp_path: Path) -> Any:
    store = SessionStore(tmp_path / "sessions.db")
    yield store
    store.close()


def begin(store: SessionStore, *texts: str, **more: Any) -> SessionInfo:
    info = store.create(**{"platform": "cli", "model": "m", "cwd": "/w", **more})
    store.append(info.id, [{"role": "user", "content": text} for text in texts])
    return info


def texts(store: SessionStore, session_id: str, **more: Any) -> list[str]:
    return [each.message["content"] for each in store.messages(session_id, **more)]


def test_messages_come_back_in_their_order(store: SessionStore, tmp_path: Path) -> None:
    info = begin(store, "a", "b")
    store.append(info.id, [{"role": "assistant", "content": "c", "tool_calls": []}])
    again = SessionStore(tmp_path / "sessions.db")
    assert texts(again, info.id) == ["a", "b", "c"]
    again.close()


def test_a_session_is_found_by_the_beginning_of_its_id(store: SessionStore) -> None:
    info = begin(store)
    assert store.get(info.id[:-2]).id == info.id
    begin(store)
    with pytest.raises(SessionNotFound, match="more than one"):
        store.get(info.id[:4])
    for nothing in ("nope", "", "%"):
        with pytest.raises(SessionNotFound):
            store.get(nothing)


def test_two_that_would_have_the_same_id_have_not(store: SessionStore, monkeypatch: pytest.MonkeyPatch) -> None:
    ends = iter(["aaaaaa", "aaaaaa", "bbbbbb", "bbbbbb", "cccccc"])
    monkeypatch.setattr("handrail.store.sessions._new_id", lambda _: next(ends))
    first, second = begin(store, "one"), begin(store, "two")
    assert [first.id, second.id, store.branch(first.id).id] == ["aaaaaa", "bbbbbb", "cccccc"]
    assert [each.message["content"] for each in store.messages(second.id)] == ["two"]


def test_what_was_used_last_comes_first(store: SessionStore) -> None:
    first, second = begin(store, cwd="/a"), begin(store, cwd="/b")
    begin(store, kind=CHILD)
    store.append(first.id, [{"role": "user", "content": "again"}])
    assert [each.id for each in store.recent()] == [first.id, second.id]
    assert [each.id for each in store.recent(cwd="/b")] == [second.id]


def test_a_branch_shares_the_beginning_and_goes_its_own_way(store: SessionStore) -> None:
    info = begin(store, "a", "b")
    number = store.messages(info.id)[0].id
    branch = store.branch(info.id, after=number)
    store.append(branch.id, [{"role": "user", "content": "x"}])
    store.append(info.id, [{"role": "user", "content": "c"}])
    assert texts(store, branch.id) == ["a", "x"]
    assert texts(store, info.id) == ["a", "b", "c"]
    twig = store.branch(branch.id)
    assert texts(store, twig.id) == ["a", "x"]


def test_a_branch_outlives_the_session_that_it_came_from(store: SessionStore) -> None:
    info = begin(store, "a")
    branch = store.branch(info.id)
    store.delete(info.id)
    assert texts(store, branch.id) == ["a"]
    assert info.id not in {each.id for each in store.recent()}


def test_hidden_messages_are_out_of_the_conversation_and_can_be_searched(store: SessionStore) -> None:
    info = begin(store, "secret plan", "b")
    store.hide(info.id, [store.messages(info.id)[0].id])
    assert texts(store, info.id) == ["b"]
    assert texts(store, info.id, hidden=True) == ["secret plan", "b"]
    assert [hit.session for hit in search(store, "plan")] == [info.id]


def test_a_deleted_session_is_not_found_by_searching(store: SessionStore) -> None:
    info = begin(store, "unmistakable words")
    store.delete(info.id)
    assert search(store, "unmistakable") == []
    other = begin(store, "other words")
    assert [hit.session for hit in search(store, "words")] == [other.id]


def test_costs_and_calls_are_added_up(store: SessionStore) -> None:
    info = begin(store)
    store.append(info.id, [], asked=StoredModelCall(1.0, 0.5, "m", 10, 2))
    assert store.get(info.id).cost is None
    store.append(info.id, [], asked=StoredModelCall(1.0, 0.5, "m", 1, 1, 0, 0.5))
    assert store.get(info.id)[-3:] == (11, 3, 0.5)
    call = StoredCall("terminal", "c1", {"command": "ls"}, 1.0, 0.5, "denied", 0.25)
    store.append(info.id, [], calls=[call])
    assert store.calls(info.id) == [call]


def test_many_threads_lose_nothing(store: SessionStore) -> None:
    info = begin(store)
    in_threads(16, lambda n: [store.append(info.id, [{"role": "user", "content": f"{n}.{i}"}]) for i in range(10)])
    assert len(texts(store, info.id)) == 160


WRITER = """
import sys
from pathlib import Path
from handrail.store.sessions import SessionStore
store = SessionStore(Path(sys.argv[1]))
for number in range(100_000):
    store.append(sys.argv[2], [{"role": "user", "content": f"{sys.argv[3]} {number}"}])
    print(number, flush=True)
"""


def test_a_killed_writer_loses_at_most_the_message_being_written(store: SessionStore, tmp_path: Path) -> None:
    info = begin(store)
    command = [sys.executable, "-c", WRITER, str(tmp_path / "sessions.db"), info.id, "w"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        for line in writer.stdout:
            if int(line) >= 50:
                os.kill(writer.pid, signal.SIGKILL)
                break
        rest = writer.stdout.read().split()
    last = int(rest[-1]) if rest else 50
    found = texts(store, info.id)
    assert found[: last + 1] == [f"w {number}" for number in range(last + 1)]
    assert len(found) <= last + 2


def test_two_processes_write_to_one_store(store: SessionStore, tmp_path: Path) -> None:
    info = begin(store)
    code = WRITER.replace("100_000", "40")
    command = [sys.executable, "-c", code, str(tmp_path / "sessions.db"), info.id]
    writers = [subprocess.Popen([*command, name], stdout=subprocess.DEVNULL) for name in ("a", "b")]
    assert [writer.wait() for writer in writers] == [0, 0]
    assert len(texts(store, info.id)) == 80


def test_a_store_of_a_later_version_is_refused(tmp_path: Path) -> None:
    import sqlite3

    path = tmp_path / "sessions.db"
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version=999")
    connection.close()
    with pytest.raises(StoreError, match="later version"):
        SessionStore(path).recent()


def test_a_file_that_is_no_store_is_named(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    path.write_bytes(b"not a database" * 100)
    with pytest.raises(StoreError, match=r"sessions\.db"):
        SessionStore(path).recent()


# Searching


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("deploy", "we deploy the parser on Friday"),
        ("friday DEPLOY", "we deploy the parser on Friday"),
        ("depl", "we deploy the parser on Friday"),
        ('"parser on"', "we deploy the parser on Friday"),
        ("read_config(path)", "def read_config(path): return open(path)"),
        ("_config(pa", "def read_config(path): return open(path)"),
        ("配置文件", "请读取配置文件的内容"),
        ("配置", "请读取配置文件的内容"),  # most words of such scripts have two characters
        ("内容 配置", "请读取配置文件的内容"),
        ("置配", ""),
        ("東京", "私は東京に住んでいます"),
        ("서울", "오늘 서울에서 만나요"),
        ("AND OR NOT", ""),
        ('"', ""),
        ("***", ""),
        ("", ""),
        ("NEAR(a b)", ""),
    ],
)
def test_words_code_and_other_scripts_are_found(store: SessionStore, query: str, found: str) -> None:
    begin(store, "we deploy the parser on Friday", "def read_config(path): return open(path)", "请读取配置文件的内容")
    begin(store, "私は東京に住んでいます", "오늘 서울에서 만나요")
    hits = search(store, query)
    assert [hit.excerpt for hit in hits] == ([found] if found else [])


def test_words_come_before_pieces_of_words(store: SessionStore) -> None:
    begin(store, "call getUserName()", "the UserName is empty", "is a UserName of getUserName")
    found = [hit.excerpt for hit in search(store, "UserName")]
    assert found[-1] == "call getUserName()"
    assert len(found) == 3
    assert len(search(store, "is UserName")) == 2


def test_a_call_is_found_by_its_arguments(store: SessionStore) -> None:
    info = begin(store)
    call = {"id": "1", "type": "function", "function": {"name": "terminal", "arguments": '{"command": "make bench"}'}}
    store.append(info.id, [{"role": "assistant", "content": "", "tool_calls": [call]}])
    assert [hit.role for hit in search(store, "bench terminal")] == ["assistant"]


def test_a_hit_can_be_read_with_its_neighbours(store: SessionStore) -> None:
    info = begin(store, *"abcdefg")
    begin(store, "z")
    number = store.messages(info.id)[3].id
    around = window(store, number, before=2, after=1)
    assert [each.message["content"] for each in around] == ["b", "c", "d", "e"]
    assert window(store, 10_000) == []


def test_a_long_message_is_shown_around_the_hit(store: SessionStore) -> None:
    begin(store, "x " * 2_000 + "needle" + " y" * 2_000)
    (hit,) = search(store, "needle")
    assert "needle" in hit.excerpt
    assert len(hit.excerpt) < 400
