"""SQL by statement: comments and strings do not count, every statement does."""

from __future__ import annotations

import pytest

from handrail.judge.grammar.sql import is_dangerous
from tests.support import costs_less_than


@pytest.mark.parametrize(
    "text",
    [
        "DROP TABLE users",
        "drop/**/table users",
        "/* harmless */ DROP TABLE users",
        "SELECT 1; DROP TABLE users",
        "SELECT 1;\nTRUNCATE orders;",
        "BEGIN; DELETE FROM users; COMMIT",
        "DELETE FROM users",
        "delete from users where 1=1",
        "DELETE FROM users WHERE TRUE",
        "DELETE FROM users WHERE 'a'='a'",
        "DELETE FROM users WHERE id = id",
        "DELETE FROM users WHERE id=1 OR 1=1",
        "DELETE FROM users -- WHERE id = 1",
        "DELETE t FROM t",
        "WITH d AS (DELETE FROM a RETURNING *) SELECT * FROM d",
        "UPDATE users SET admin = true",
        "UPDATE users SET a='where' ",
        "ALTER TABLE t DROP COLUMN c",
        "ALTER USER postgres PASSWORD 'x'",
        "GRANT ALL ON x TO y",
        "COPY t TO PROGRAM 'sh'",
        "EXEC xp_cmdshell 'dir'",
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity",
        "EXPLAIN ANALYZE DELETE FROM t WHERE id=1",
        "/*!50000 DROP TABLE users */",
        "\\! rm -rf x",
        "MERGE INTO a USING b ON a.i=b.i WHEN MATCHED THEN DELETE",
    ],
)
def test_a_statement_that_destroys_is_found(text: str) -> None:
    assert is_dangerous(text)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM users",
        "SELECT 'DROP TABLE users'",
        'SELECT "DELETE FROM x" FROM t',
        "-- DROP TABLE users\nSELECT 1",
        "/* DROP TABLE users */ SELECT 1",
        "DELETE FROM users WHERE id = 3",
        "DELETE FROM sessions WHERE expires_at < now()",
        "DELETE FROM t WHERE id = 1 RETURNING *",
        "UPDATE users SET name='x' WHERE id=1",
        "UPDATE t SET dropped = true WHERE id IN (1, 2)",
        "INSERT INTO log VALUES ('truncate')",
        "CREATE TABLE deleted (id int)",
        "CREATE TABLE IF NOT EXISTS t (id int)",
        "ALTER TABLE t ADD COLUMN x int",
        "EXPLAIN DELETE FROM t WHERE id=1",
        "VACUUM",
        ".tables",
        "\\dt",
        "",
    ],
)
def test_a_statement_that_does_not_is_not(text: str) -> None:
    assert not is_dangerous(text)


@pytest.mark.parametrize(
    "unit", ["DELETE FROM ", "UPDATE a SET ", "WHERE ", "(", "'", "/*", "--", "a OR ", "; ", "\\", '"']
)
def test_a_long_text_takes_time_in_proportion(unit: str) -> None:
    with costs_less_than(5):
        is_dangerous(unit * (100_000 // len(unit)))
