"""What a newcomer sees first: help in groups, lists that are empty, and what is missing in few lines."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from handrail.cli.app import GROUPS, command_names
from handrail.cli.commands.doctor import Finding, Health, _by_fix
from tests.cli.conftest import Cli, run_here


def test_help_has_every_command_once_in_a_group_on_one_full_line() -> None:
    shown = run_here("--help").out
    assert re.findall(r"^(\w[\w ]*):$", shown, re.M) == ["Options", *GROUPS]
    assert sorted(name for names in GROUPS.values() for name in names.split()) == command_names()
    for name in command_names():
        (line,) = re.findall(rf"^  {name} +(\S.*)$", shown, re.M)
        assert line.endswith("."), line
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize("group", ["sessions", "approvals", "calls", "audit"])
def test_help_of_a_group_cuts_no_sentence(group: str) -> None:
    assert "..." not in run_here(group, "--help").out.partition("Commands:")[2]


@pytest.mark.parametrize(
    "command",
    [
        "sessions list",
        "sessions list --here",
        "ps",
        "cron list",
        "approvals list",
        "approvals log",
        "pair list",
        "serve token list",
        "serve login list",
        "mcp list",
        "plugins list",
    ],
)
def test_an_empty_list_says_what_to_do_next(home: Path, command: str) -> None:
    (line,) = run_here(*command.split()).out.splitlines()
    assert re.search(r"`.*handrail \w+", line), line


def test_a_new_job_says_whether_anything_will_run_it(home: Path) -> None:
    added = run_here("cron", "add", "30m", "--tool", "terminal", "--arg", "command=date")
    assert "no scheduler runs" in added.err
    assert re.search(r"start `.*handrail cron run`", added.err)


def test_doctor_has_one_line_for_the_tools_of_an_extra() -> None:
    fix = "pip install 'handrail[browser]'"
    tools = [Finding(f"tool browser_{name}", Health.MISSING, "no playwright", fix) for name in "abc"]
    other = Finding("tool ha", Health.MISSING, "HASS_TOKEN is not set", "set it")
    alone = Finding("tool x", Health.MISSING, "its check failed")
    found = list(_by_fix([tools[0], other, *tools[1:], alone, alone]))
    assert [each.what for each in found] == ["tool browser_a and 2 more", "tool ha", "tool x", "tool x"]
    assert (found[0].detail, found[0].fix) == ("no playwright", fix)


def test_tools_has_one_line_for_the_tools_of_an_extra(cli: Cli) -> None:
    with cli.terminal("tools", columns=120) as terminal:
        assert terminal.end() == 0
    (line,) = [line for line in terminal.text.splitlines() if line.startswith("homeassistant")]
    assert "✗ 4" in line
    (line,) = [line for line in terminal.text.splitlines() if line.startswith("file ")]
    assert line.rstrip().endswith("✓ 5    patch, read_file, search_files, undo, write_file")
    assert "ha_get_state" in cli("tools").out  # programs get every name
    with cli.terminal("tools", "--toolset", "file", columns=120) as terminal:
        assert terminal.end() == 0
    assert len([line for line in terminal.text.splitlines() if line.startswith("file ")]) == 5


def test_serve_says_goodbye(cli: Cli) -> None:
    with cli.terminal("serve", "--port", "127.0.0.1:0") as terminal:
        terminal.wait_for("Ctrl-C stops")
        terminal.interrupt()
        terminal.end()
    assert terminal.text.rstrip().endswith("Goodbye.")
