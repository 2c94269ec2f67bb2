"""One file that many open at once."""

from __future__ import annotations

from pathlib import Path

from handrail.store.database import Database

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
