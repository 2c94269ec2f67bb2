"""`handrail tools`, `toolsets` and `schema`."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Cli, run_here


def test_tools_are_plain_columns_in_a_pipe(cli: Cli) -> None:
    ran = cli("tools")
    assert ran.code == 0
    assert ran.out.splitlines()[0].split() == ["TOOLSET", "TOOL", "STATUS"]
    assert ["file", "read_file", "✓", "ready"] in [line.split() for line in ran.out.splitlines()]


def test_tools_of_one_set_can_be_asked_for(cli: Cli) -> None:
    listed = cli("tools", "--toolset", "file", "--toolset", "results", "--json").json
    assert {tool["toolset"] for tool in listed} == {"file", "results"}
    assert all(tool["available"] for tool in listed)


def test_a_tool_that_cannot_be_used_says_why_and_what_to_do(with_tools: Cli) -> None:
    assert "✗ the door is locked; bring the key" in with_tools("tools").out
    [locked] = [tool for tool in with_tools("tools", "--json").json if tool["name"] == "locked"]
    assert (locked["available"], locked["reason"], locked["fix"]) == (False, "the door is locked", "bring the key")


def test_tools_that_the_configuration_takes_away_are_marked(cli: Cli) -> None:
    cli.configure("tools:\n  disabled_toolsets: [file]\n")
    [line] = [line for line in cli("tools").out.splitlines() if "read_file" in line]
    assert "switched off" in line


@pytest.mark.parametrize(("env", "painted"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)])
def test_colours_are_for_terminals_that_want_them(cli: Cli, env: dict[str, str], painted: bool) -> None:
    with cli.terminal("tools", **env) as terminal:
        assert terminal.end() == 0
    assert "✓ 5" in terminal.shown
    assert ("\x1b[32m" in terminal.shown) is painted


def test_a_table_fits_the_terminal(with_tools: Cli) -> None:
    with with_tools.terminal("tools", columns=40, NO_COLOR="1") as terminal:
        terminal.end()
    assert [line for line in terminal.text.splitlines() if len(line) > 40] == []
    assert "locked" in terminal.shown


def test_toolsets_are_listed_with_what_they_are_for() -> None:
    shown = run_here("toolsets")
    assert "read, write, patch and search files" in shown.out
    assert "handrail-telegram" not in shown.out
    assert "toolsets --all" in shown.err
    assert "handrail-telegram" in run_here("toolsets", "--all").out
    listed = {info["name"]: info for info in run_here("toolsets", "--json").json}
    assert "read_file" in listed["coding"]["tools"]
    assert "write_file" not in listed["safe"]["tools"]


def test_one_toolset_is_shown_with_its_tools() -> None:
    assert "includes: file, results" in run_here("toolsets", "coding").out
    assert run_here("toolsets", "hermes-cli", "--json").json["name"] == "handrail-cli"


@pytest.mark.parametrize(
    "command", [("tools", "--toolset", "fiel"), ("toolsets", "fiel"), ("schema", "--toolset", "fiel")]
)
def test_an_unknown_toolset_is_a_usage_error_with_a_suggestion(cli: Cli, command: tuple[str, ...]) -> None:
    ran = cli(*command)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "handrail: unknown toolset 'fiel'; did you mean 'file'?\n"


@pytest.mark.parametrize(
    ("dialect", "key"),
    [
        ("openai", "function"),
        ("anthropic", "input_schema"),
        ("responses", "strict"),
        ("gemini", "name"),
        ("mcp", "inputSchema"),
    ],
)
def test_a_schema_is_json_in_the_dialect_asked_for(dialect: str, key: str) -> None:
    listed = run_here("schema", "--toolset", "file", "--format", dialect).json
    assert listed
    assert all(key in tool for tool in listed)


def test_a_schema_leaves_out_what_is_disabled_and_what_cannot_be_used(with_tools: Cli) -> None:
    names = {tool["function"]["name"] for tool in with_tools("schema", "--disable", "file").json}
    assert "read_file" not in names
    assert "locked" not in names
    assert "todo" in names


def test_a_schema_follows_the_configuration_unless_told_otherwise(cli: Cli) -> None:
    cli.configure("tools:\n  enabled_toolsets: [todo]\n")
    assert [tool["function"]["name"] for tool in run_here("schema").json] == ["todo"]
    assert "read_file" in run_here("schema", "--toolset", "file").out


def test_an_unknown_dialect_is_a_usage_error() -> None:
    ran = run_here("schema", "--format", "latin")
    assert ran.code == 2
    assert "anthropic" in ran.err
