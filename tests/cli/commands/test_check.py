"""`handrail check`."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import Cli


@pytest.mark.parametrize(("command", "code"), [("ls -la", 0), ("rm -rf build", 3), ("rm -rf /", 4), ("echo 'x", 3)])
def test_the_exit_code_is_the_verdict(cli: Cli, command: str, code: int) -> None:
    assert cli("check", command).code == code


def test_a_person_sees_what_is_dangerous_why_and_what_would_run(cli: Cli) -> None:
    ran = cli("check", 'x=rm; sudo bash -c "$x -rf ~/work"; $Y now')
    assert ran.out.startswith('x=rm; sudo bash -c "$x -rf ~/work"; $Y now\n')
    assert "fs.rm.recursive: deletes a tree of files" in ran.out
    assert "runs   rm -rf '~/work'" in ran.out
    assert "open   $Y: known only when it runs" in ran.out
    assert ran.out.endswith("ask    you would be asked\n")


def test_nothing_is_run(cli: Cli) -> None:
    target = cli.file("kept.txt", "x")
    cli("check", f"rm {target}; touch made.txt; $(touch made.txt)")
    assert target.exists()
    assert not (cli.cwd / "made.txt").exists()


def test_a_program_gets_json(cli: Cli) -> None:
    ran = cli("check", "--json", "ls; rm -rf build")
    assert ran.code == 3
    assert ran.json["verdict"] == "ask"
    finding = ran.json["findings"][0]
    start, end = finding["span"]
    assert ran.json["command"][start:end] == "rm -rf build"


def test_a_script_can_come_on_stdin(cli: Cli) -> None:
    assert cli("check", "-", stdin="ls\nrm -rf /etc\n").code == 4
    assert cli("check", "-", stdin="ls\n").code == 0


def test_where_it_would_start_counts(cli: Cli) -> None:
    assert cli("check", "rm -rf *", "--cwd", "/").code == 4
    assert cli("check", "rm -rf *").code == 3


def test_the_dangerous_part_is_painted_at_a_terminal(cli: Cli) -> None:
    with cli.terminal("check", "ls; rm -rf build; rm -rf /") as terminal:
        terminal.wait_for("whoever approves it")
        assert "\x1b[33mrm -rf build\x1b[0m" in terminal.shown
        assert "\x1b[31mrm -rf /\x1b[0m" in terminal.shown


def test_what_a_terminal_would_obey_is_made_visible(cli: Cli) -> None:
    with cli.terminal("check", "echo \x1b[2J\u202e; rm -rf build") as terminal:
        terminal.wait_for("asked")
        assert "\x1b[2J" not in terminal.shown
        assert "\u202e" not in terminal.shown
        assert "\\x1b[2J\\u202e" in terminal.text


def test_bytes_that_are_no_text_are_judged(cli: Cli) -> None:
    with cli.start("check", "--json", "-") as process:
        out, _ = process.communicate(b"rm -rf \xff\xfe")
    assert process.returncode == 3
    assert json.loads(out)["verdict"] == "ask"


def test_rules_of_the_user_count(cli: Cli) -> None:
    assert cli("check", "deploy production").code == 0
    cli.home.mkdir(exist_ok=True)
    (cli.home / "config.yaml").write_text(
        "approval_rules:\n"
        "  team.deploy:\n"
        "    why: goes live\n"
        "    uses: [deploy production]\n"
        "    match: [deploy production]\n"
        "    not_match: [deploy staging]\n"
    )
    ran = cli("check", "deploy production")
    assert ran.code == 3
    assert "team.deploy: goes live" in ran.out


def test_a_rule_that_cannot_be_used_is_refused_with_its_line_and_key(cli: Cli) -> None:
    cli.home.mkdir(exist_ok=True)
    (cli.home / "config.yaml").write_text(
        "# ours\napproval_rules:\n  team.deploy:\n    why: x\n    uses: [deploy]\n    match: [build]\n    not_match: [ls]\n"
    )
    ran = cli("check", "ls")
    assert ran.code == 1
    assert "config.yaml:3: approval_rules.team.deploy: " in ran.err
    assert "'build' is not matched" in ran.err


@pytest.mark.parametrize(
    ("settings", "command", "code", "why"),
    [
        ("approvals: {deny: [git push]}", "git -C . push origin main", 4, "your deny list has it"),
        ("command_allowlist: [git push]", "git push --force", 0, "your settings allow it"),
        ("command_allowlist: [git push]", "git push --force; rm -rf build", 3, "you would be asked"),
        ("approvals: {mode: 'off'}", "rm -rf build", 0, "approvals.mode is off"),
        ("approvals: {mode: 'off'}", "rm -rf /", 4, "whoever approves it"),
    ],
)
def test_what_your_settings_allow_and_deny_counts(cli: Cli, settings: str, command: str, code: int, why: str) -> None:
    cli.configure(settings)
    ran = cli("check", command)
    assert (ran.code, why in ran.out) == (code, True), ran.out
