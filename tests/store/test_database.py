"""One file that many open at once."""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from handrail.errors import RequestNotFound, StoreError
from handrail.protocols import Answer, ApprovalRequest, Decision
from handrail.store.approvals import ApprovalStore
from handrail.store.database import Database

from ..services.small_disk import small_disk
from ..support import in_threads


def test_many_that_make_the_same_file_at_the_same_moment_all_can_use_it(tmp_path: Path) -> None:
    for number in range(20):
        path = tmp_path / f"{number}.db"

        def use(index: int, path: Path = path) -> int:
            database = Database(path, ("CREATE TABLE rows (value INTEGER);",))
            with database.transaction() as connection:
                connection.execute("INSERT INTO rows VALUES (?)", (index,))
            database.close()
            return index

        assert sorted(in_threads(8, use)) == list(range(8))


_ELSEWHERE = """
import sys
from pathlib import Path
from handrail.store.database import Database
database = Database(Path(sys.argv[1]), ("CREATE TABLE rows (value INTEGER);",))
print(sorted(row["value"] for row in database.rows("SELECT value FROM rows")))
database.close()
"""


def test_what_one_object_writes_is_seen_elsewhere_when_another_of_its_process_has_come_and_gone(tmp_path: Path) -> None:
    path, steps = tmp_path / "shared.db", ("CREATE TABLE rows (value INTEGER);",)

    def seen_elsewhere() -> str:
        return subprocess.run([sys.executable, "-c", _ELSEWHERE, path], capture_output=True, text=True).stdout.strip()

    def write(database: Database, value: int) -> None:
        with database.transaction() as connection:
            connection.execute("INSERT INTO rows VALUES (?)", (value,))

    first, second = Database(path, steps), Database(path, steps)
    write(first, 1)
    write(second, 2)
    second.close()
    assert seen_elsewhere() == "[1, 2]"
    write(first, 3)
    assert seen_elsewhere() == "[1, 2, 3]"
    first.close()


ROWS = ("CREATE TABLE rows (value INTEGER UNIQUE);",)


def add(database: Database, value: int) -> int:
    with database.transaction() as connection:
        connection.execute("INSERT INTO rows VALUES (?)", (value,))
    return value


def values(database: Database) -> list[int]:
    return [row["value"] for row in database.rows("SELECT value FROM rows ORDER BY value")]


@contextlib.contextmanager
def held(database: Database) -> Iterator[None]:
    """What is given to be written meanwhile waits."""
    began, ends = threading.Event(), threading.Event()

    def hold() -> None:
        began.set()
        ends.wait()

    holding = database.write(hold)
    began.wait()
    try:
        yield
    finally:
        ends.set()
        holding.result()


def test_what_waits_to_be_written_is_committed_at_once(tmp_path: Path) -> None:
    with contextlib.closing(Database(tmp_path / "a.db", ROWS, durable=True)) as database:
        statements: list[str] = []
        with database.transaction() as connection:
            connection.set_trace_callback(statements.append)
        with held(database):
            waiting = [database.write(add, database, value) for value in range(40)]
        assert [each.result() for each in waiting] == list(range(40))
        assert statements.count("COMMIT") <= 3  # the first, the one that was held, and all others
        assert values(database) == list(range(40))


def test_a_write_that_fails_is_taken_back_alone(tmp_path: Path) -> None:
    def adds_two(database: Database) -> None:
        with database.transaction():
            add(database, 5)
            add(database, 1)

    with contextlib.closing(Database(tmp_path / "a.db", ROWS, durable=True)) as database:
        with held(database):
            first, second, third = database.write(add, database, 1), database.write(adds_two, database), None
            third = database.write(add, database, 2)
        assert (first.result(), third.result()) == (1, 2)
        with pytest.raises(StoreError, match="UNIQUE"):
            second.result()
        assert values(database) == [1, 2]


def test_reading_waits_for_no_commit_and_sees_what_its_own_thread_has_written(tmp_path: Path) -> None:
    def count() -> tuple[int, int]:
        add(database, 2)
        return len(values(database)), threading.get_ident()

    with contextlib.closing(Database(tmp_path / "a.db", ROWS, durable=True)) as database:
        add(database, 1)
        with held(database):
            writing = database.write(count)
            assert values(database) == [1]
            assert not writing.done()
        assert writing.result()[0] == 2


def test_a_child_writes_while_a_thread_of_its_parent_is_in_a_transaction(tmp_path: Path) -> None:
    with contextlib.closing(Database(tmp_path / "a.db", ROWS)) as database:
        add(database, 1)
        with held(database):
            waiting = database.write(add, database, 2)  # the parent's alone
            if (child := os.fork()) == 0:
                with contextlib.suppress(BaseException):
                    os._exit(0 if values(database) == [1] and not database._queue else 1)
                os._exit(2)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert waiting.result() == 2


def test_all_that_waits_fails_when_the_disk_is_full(tmp_path: Path) -> None:
    with (
        small_disk(tmp_path, "256k") as disk,
        contextlib.closing(Database(disk / "rows.db", ("CREATE TABLE rows (value BLOB);",), durable=True)) as database,
    ):
        with held(database):
            waiting = [database.write(_fill, database) for _ in range(8)]
        for each in waiting:
            with pytest.raises(StoreError, match="the disk is full"):
                each.result()
        assert database.rows("SELECT * FROM rows") == []


def _fill(database: Database) -> None:
    with database.transaction() as connection:
        connection.execute("INSERT INTO rows VALUES (zeroblob(100000))")


def test_a_disk_that_is_full_is_said_to_be_full(tmp_path: Path) -> None:
    """SQLite itself calls it an I/O error when it cannot make the files that it needs beside a store."""
    with (
        small_disk(tmp_path, "256k") as disk,
        contextlib.closing(Database(disk / "rows.db", ("CREATE TABLE rows (value INTEGER);",))) as database,
    ):
        database.rows("SELECT 1")
        database.close()
        with contextlib.suppress(OSError), (disk / "filler").open("wb", buffering=0) as filler:
            while True:
                filler.write(b"x" * 4096)
        with pytest.raises(StoreError, match="the disk is full; make room on its disk"), database.transaction():
            pass


def test_a_damaged_store_is_a_problem_of_the_store_whatever_its_bytes(tmp_path: Path) -> None:
    for seed in range(40):
        path = tmp_path / f"{seed}.db"
        made = ApprovalStore(path)
        made.ask(ApprovalRequest("terminal", {}, "why", expires_at=4e9), fingerprint="f")
        made.close()
        data = bytearray(path.read_bytes())
        dice = random.Random(seed)
        for _ in range(dice.choice((1, 50, len(data)))):
            data[dice.randrange(len(data))] = dice.randrange(256)
        path.write_bytes(data)
        store = ApprovalStore(path)
        with contextlib.suppress(StoreError):
            store.pending()
        with contextlib.suppress(StoreError, RequestNotFound):
            store.answer("x", Answer(Decision.DENY))
        store.close()


def test_a_message_with_damaged_bytes_is_not_a_traceback(tmp_path: Path) -> None:
    store = ApprovalStore(tmp_path / "a.db")
    store.ask(ApprovalRequest("terminal", {}, "why", expires_at=4e9), fingerprint="f")
    with store.database.transaction() as connection:
        connection.execute("UPDATE requests SET question = '{'")
    with pytest.raises(StoreError, match="damaged"):
        store.pending()

    def broken(**_: object) -> object:
        raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")

    store.database._open = broken  # type: ignore[method-assign, assignment]
    with pytest.raises(StoreError, match="cannot be used"):
        store.pending()
