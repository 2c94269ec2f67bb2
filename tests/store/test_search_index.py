"""What was said is found at once, though the index is made some messages at a time, by whoever comes next."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from handrail.errors import StoreError
from handrail.store import sessions
from handrail.store.search import search
from handrail.store.sessions import SessionStore
from tests.support import in_threads


@pytest.fixture
def store(tmp_path: Path) -> Any:
    store = SessionStore(tmp_path / "sessions.db")
    yield store
    store.close()


def begin(store: SessionStore) -> str:
    return store.create(platform="cli", model="m", cwd="/w").id


def say(store: SessionStore, session: str, *texts: str) -> list[int]:
    return store.append(session, [{"role": "user", "content": text} for text in texts])


def waiting(store: SessionStore) -> int:
    return int(store.rows("SELECT count(*) FROM messages WHERE id > (SELECT last FROM indexed)")[0][0])


def found(store: SessionStore, query: str) -> list[int]:
    return sorted(hit.message_id for hit in search(store, query, limit=1_000))


def test_a_short_message_waits_and_is_found_by_another_object_at_once(store: SessionStore, tmp_path: Path) -> None:
    ids = say(store, begin(store), "a heron stood there", "and a stork")
    assert waiting(store) == 2
    other = SessionStore(tmp_path / "sessions.db")
    assert found(other, "heron") == ids[:1]
    assert found(other, "tork") == ids[1:]  # a piece of a word
    assert waiting(store) == 0
    other.close()


def test_what_waits_is_indexed_when_it_has_become_much(store: SessionStore) -> None:
    session = begin(store)
    say(store, session, "first")
    say(store, session, "x" * (sessions.MAX_WAITING_CHARS + 1))
    assert waiting(store) == 0
    say(store, session, "last")
    assert waiting(store) == 1


def test_many_short_runs_do_not_leave_ever_more_waiting(tmp_path: Path) -> None:
    text = "x" * (sessions.MAX_WAITING_CHARS // 3)
    for _ in range(10):
        store = SessionStore(tmp_path / "sessions.db")
        say(store, begin(store), text)
        assert waiting(store) <= 3
        store.close()


WRITER = """
import os, signal, sys
from pathlib import Path
from handrail.store.sessions import SessionStore
store = SessionStore(Path(sys.argv[1]))
session = store.create(platform="cli", model="m", cwd="/w")
store.append(session.id, [{"role": "user", "content": "the last words"}])
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_process_said_last_is_found(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    subprocess.run([sys.executable, "-c", WRITER, str(path)], check=False, timeout=60)
    store = SessionStore(path)
    assert waiting(store) == 1
    assert len(found(store, "last words")) == 1
    store.close()


def test_numbers_that_are_given_again_are_indexed_again(store: SessionStore) -> None:
    kept, gone = begin(store), begin(store)
    first = say(store, kept, "stays here")
    old = say(store, gone, "goes away")
    assert found(store, "goes") == old
    store.delete(gone)
    new = say(store, kept, "comes anew")
    assert new == old
    assert found(store, "goes") == []
    assert found(store, "anew") == new
    assert found(store, "stays") == first


def test_what_is_deleted_while_it_waits_is_never_found(store: SessionStore) -> None:
    session = begin(store)
    old = say(store, session, "a secret")
    store.delete(session)
    assert say(store, begin(store), "a riddle") == old
    assert found(store, "secret") == []
    assert found(store, "riddle") == old


def test_two_that_write_and_search_at_once_index_each_message_once(tmp_path: Path) -> None:
    stores = [SessionStore(tmp_path / "sessions.db") for _ in range(4)]
    sessions = [begin(store) for store in stores]

    def work(place: int) -> None:
        for number in range(10):
            say(stores[place], sessions[place], f"everyone said number{number} by{place}")
            assert len(found(stores[place], f'"number{number} by{place}"')) == 1

    in_threads(4, work)
    assert len(found(stores[0], "everyone")) == 40
    assert stores[0].rows("SELECT count(*) FROM words_docsize")[0][0] == 40
    for store in stores:
        store.close()


def test_a_full_store_is_searched_as_far_as_it_was_indexed(store: SessionStore) -> None:
    session = begin(store)
    ids = say(store, session, "a heron")
    assert found(store, "heron") == ids
    say(store, session, "another heron " + " ".join(f"bird{number}" for number in range(2_000)))
    full = store.rows("PRAGMA page_count")[0][0]
    store.rows(f"PRAGMA max_page_count={full}")
    with pytest.raises(StoreError, match="full"):
        say(store, session, *(f"filler {number} {'z' * 4_000}" for number in range(1_000)))
    with pytest.raises(StoreError, match="full"):
        store.index()
    assert ids[0] in found(store, "heron")


def test_very_much_is_indexed_some_at_a_time(store: SessionStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "_MESSAGES_AT_ONCE", 200)
    session = begin(store)
    ids = say(store, session, *(f"heron number{place} {'x' * 200}" for place in range(450)))
    assert waiting(store) == 250
    ids += say(store, session, "a heron")
    assert waiting(store) == 51
    assert found(store, "heron") == ids
    assert waiting(store) == 0


def test_what_a_store_of_an_earlier_version_has_is_indexed_anew_and_once(store: SessionStore, tmp_path: Path) -> None:
    ids = say(store, begin(store), "a heron", "请读取配置文件")
    assert found(store, "heron") == ids[:1]
    store.close()
    with sqlite3.connect(tmp_path / "sessions.db") as connection:
        connection.execute("DROP TABLE indexed")
        connection.execute("ALTER TABLE calls DROP COLUMN waited")
        connection.execute("PRAGMA user_version=2")
    connection.close()
    again = SessionStore(tmp_path / "sessions.db")
    assert waiting(again) == 2
    assert found(again, "heron") == ids[:1]
    assert found(again, "配置") == ids[1:]
    assert again.rows("SELECT count(*) FROM words_docsize")[0][0] == 2
    again.close()
