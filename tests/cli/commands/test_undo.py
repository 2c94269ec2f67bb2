"""`handrail calls`, `effects`, `undo`, `redo` and `audit`: each command is a process of its own."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli
from tests.support import configure, wait_until


def call(cli: Cli, command: str, **more: Any) -> dict[str, object]:
    ran = cli("call", "terminal", "-", stdin=json.dumps({"command": command, **more}))
    found: dict[str, object] = json.loads(ran.out)
    return found


def test_the_last_command_of_a_folder_is_undone_by_another_process_and_redone(cli: Cli) -> None:
    (cli.cwd / "a").write_text("one\n")
    assert call(cli, "echo two > a; touch b")["call"] == 1
    call(cli, "cat a")
    listed = cli("calls", "--json").json
    assert [(one["number"], one["tool"], one["counts"]["changed"]) for one in listed] == [(1, "terminal", 1)]
    assert "1 changed, 1 created" in cli("calls").out
    shown = cli("effects", "1", "--diff").out
    assert f"~ {cli.cwd}/a" in shown
    assert "-one" in shown
    assert f"+ {cli.cwd}/b" in shown
    undone = cli("undo", "--last")
    assert (undone.code, (cli.cwd / "a").read_text(), (cli.cwd / "b").exists()) == (0, "one\n", False)
    assert "undone by call" in cli("calls").out
    assert cli("undo", "--last").code == 1, "there is no other"
    assert cli("redo", "1").code == 0
    assert (cli.cwd / "a").read_text() == "two\n"
    assert cli("undo", "1").code == 0, "after a redo it can be undone again"


def test_a_redo_brings_back_a_call_that_was_undone_in_parts(cli: Cli) -> None:
    (cli.cwd / "a").write_text("one\n")
    call(cli, "echo two > a; touch b")
    for words in (("undo", "1", "--only", "a"), ("undo", "1")):
        assert cli(*words).code == 0
    assert (cli("redo", "1", "--dry-run").code, (cli.cwd / "b").exists()) == (0, False)
    (redone,) = cli("redo", "1", "--json").json
    assert [Path(one["path"]).name for one in redone["changed"] + redone["lost"]] == ["a", "b"]
    assert ((cli.cwd / "a").read_text(), (cli.cwd / "b").exists()) == ("two\n", True)
    assert cli("redo", "1").code == 1, "all of it is back"


def test_a_redo_tells_what_is_back_as_effects_tells_it(cli: Cli) -> None:
    work = cli.cwd
    call(cli, "mkdir -p old/in; touch a old/x old/in/y; echo x > c")
    call(cli, "mkdir -p new/in; touch new/in/{1..3}; rm old/x old/in/y; rmdir old/in; mv a b; echo y > c")
    told = [line for line in cli("effects", "2").out.splitlines() if line.startswith("  ")]
    assert cli("undo", "2").code == 0
    for words in (("redo", "2", "--dry-run"), ("redo", "2")):
        first, *back = cli(*words).out.splitlines()
        assert first.endswith(": 3 deleted again, 1 changed again, 1 created again, 1 moved again")
        assert [line[:4] + line[4:].split()[0].rstrip("/") for line in told] == back
    assert cli("undo", "2", "--only", "new/in").code == 0
    assert cli("redo", "2").out.splitlines()[1:] == [f"  + {work}/new/in"]


def test_calls_of_other_folders_are_not_the_last_of_this_one(cli: Cli) -> None:
    call(cli, "touch here")
    other = cli.cwd.parent / "other"
    other.mkdir()
    cli.cwd, here = other, cli.cwd
    ran = cli("undo", "--last")
    assert (ran.code, (here / "here").exists()) == (1, True)
    assert "handrail calls --all" in ran.err
    assert "handrail calls --all" in cli("calls").out
    assert len(cli("calls", "--all", "--json").json) == 1


def test_several_calls_and_a_session_are_undone_from_the_last_on(cli: Cli) -> None:
    for name in ("a", "b", "c"):
        cli("call", "write_file", f"path={name}", "content=x", "--session", "s1" if name != "c" else "s2")
    assert [one["call"] for one in cli("undo", "--last", "2", "--dry-run", "--json").json] == [3, 2]
    assert {path.name for path in cli.cwd.iterdir()} == {"a", "b", "c"}
    assert cli("undo", "--session", "s1").code == 0
    assert {path.name for path in cli.cwd.iterdir()} == {"c"}


def test_a_conflict_names_each_path_and_who_changed_it(cli: Cli) -> None:
    call(cli, "echo 1 > a; echo 1 > b; echo 1 > c")
    call(cli, "echo 2 > a")
    (cli.cwd / "b").write_text("mine")
    ran = cli("undo", "1")
    assert ran.code == 1
    assert f"{cli.cwd}/a by call 2 (terminal: echo 2 > a)" in ran.err
    assert f"{cli.cwd}/b by somebody else at " in ran.err
    assert (cli.cwd / "b").read_text() == "mine"
    assert cli("undo", "1", "--only", "c").code == 0
    assert not (cli.cwd / "c").exists()
    assert cli("undo", "1", "--force").code == 0
    assert sorted(path.read_text() for path in cli.cwd.glob("*.before-undo-*")) == ["2\n", "mine"]


def test_what_a_background_process_writes_belongs_to_its_call(cli: Cli) -> None:
    call(cli, "until test -e go; do sleep 0.05; done; echo late > made", background=True)
    assert "nothing changed so far" in cli("calls").out
    assert cli("undo", "1").code == 1
    (cli.cwd / "go").touch()
    wait_until(lambda: cli("calls", "--json").json[0]["ended"] is not None)
    assert cli("undo", "1").code == 0
    assert not (cli.cwd / "made").exists()


def test_pruned_calls_stay_in_the_list_and_cannot_be_undone(cli: Cli) -> None:
    (cli.cwd / "a").write_text("x" * 100_000)
    call(cli, "rm a")
    told = cli("calls", "prune", "--megabytes", "0", "--json").json
    assert told["calls"] == [1]
    assert told["freed_bytes"] >= 100_000
    refused = cli("undo", "1")
    assert (refused.code, "not kept any more" in refused.err) == (1, True)
    assert [(one["number"], one["can_be_undone_until"]) for one in cli("calls", "--json").json] == [(1, None)]
    assert "not kept any more" in cli("calls").out
    shown = cli("effects", "1").out
    assert ("not kept any more" in shown, "damaged" in shown) == (True, False)
    assert cli("undo", "--last").code != 0


def test_without_a_journal_calls_have_no_number(cli: Cli) -> None:
    configure(cli.home, "effects:\n  enabled: false\n")
    assert "call" not in call(cli, "touch a")
    assert cli("calls", "--json").json == []


@pytest.mark.parametrize("command", [("undo",), ("undo", "1", "--last", "--session", "s"), ("undo", "x")])
def test_wrong_usage_is_told(cli: Cli, command: tuple[str, ...]) -> None:
    assert cli(*command).code == 2


def test_an_unknown_call_is_told_with_where_to_look(cli: Cli) -> None:
    for words in (("undo", "99"), ("effects", "99"), ("redo", "99")):
        ran = cli(*words)
        assert ran.code == 1
        assert "handrail calls --all" in ran.err


def test_receipts_are_verified_offline_and_every_change_is_found(cli: Cli) -> None:
    for name in ("a", "b", "c"):
        cli("call", "write_file", f"path={name}", "content=x")
    assert "3 receipts under 3 seals: all as signed." in cli("audit", "verify").out
    assert cli("audit", "verify", "nofile").err == "handrail: cannot read nofile: No such file or directory\n"
    cli("audit", "export", "receipts.jsonl")
    (cli.cwd / "key.pem").write_text(cli("audit", "key").out)
    check = ("audit", "verify", "receipts.jsonl", "--key", "key.pem")
    assert cli(*check, "--tsa", "key.pem").err == "handrail: the file for --tsa holds no certificates in PEM form\n"
    assert cli(*check).code == 0
    path = cli.cwd / "receipts.jsonl"
    path.write_text(path.read_text().replace("write_file", "write_fire", 1))
    assert cli(*check).code == 1


def test_what_was_taken_out_of_the_store_is_noticed(cli: Cli) -> None:
    for name in ("a", "b"):
        cli("call", "write_file", f"path={name}", "content=x")
    assert cli("audit", "verify").code == 0
    with sqlite3.connect(cli.home / "state" / "calls.db") as store:
        store.execute("DELETE FROM receipts WHERE id = 2")
        store.execute("DELETE FROM seals WHERE id = 2")
    assert cli("audit", "verify").code == 1


def test_effects_name_what_was_left_running_and_hooks_have_calls_of_their_own(cli: Cli) -> None:
    configure(cli.home, "hooks:\n  PostToolUse:\n  - command: touch hooked\n    matcher: terminal\n")
    # The command ends when its child is `sleep`: until then the child's command line is that of the shell.
    became_sleep = "until grep -qx sleep /proc/$!/comm; do :; done"
    number = call(cli, f"echo x > made; sleep 77 > /dev/null 2>&1 & {became_sleep}")["call"]
    shown = cli("effects", str(number)).out
    assert "left running: sleep 77" in shown
    hook, terminal = cli("calls", "--json").json
    assert (hook["tool"], hook["head"], terminal["left_running"]) == ("hook", "touch hooked", ["sleep 77"])
    assert cli("undo", str(hook["number"])).code == 0
    assert not (cli.cwd / "hooked").exists()
