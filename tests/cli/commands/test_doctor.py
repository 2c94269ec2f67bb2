"""`handrail doctor`."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

from tests.cli.conftest import Cli


def findings(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {finding["what"]: finding for finding in report["findings"]}


def test_a_healthy_installation_has_nothing_broken(cli: Cli) -> None:
    ran = cli("doctor")
    assert ran.code == 0
    assert str(cli.home / "config.yaml") in ran.out
    assert ran.out.endswith("Nothing is broken.\n")
    assert cli("doctor", "--json").json["ok"] is True


def test_what_is_only_missing_is_no_fault(cli: Cli) -> None:
    ran = cli("doctor", "--json", PATH="/proc/nowhere")
    assert ran.code == 0
    found = findings(ran.json)
    assert found["tool ha_get_state"]["health"] == "missing"
    assert "HASS_TOKEN" in str(found["tool ha_get_state"])
    assert found["ripgrep"]["health"] == "missing"


def test_its_lines_fill_the_terminal_and_what_goes_on_is_indented(cli: Cli) -> None:
    with cli.terminal("doctor", COLUMNS="80") as terminal:
        assert terminal.end() == 0
    lines = re.sub(r"\x1b\[[\d;]*m", "", terminal.shown).splitlines()
    assert max(map(len, lines)) <= 80
    for line, after in itertools.pairwise(lines):
        if after.startswith("    ") and "fix:" not in after:
            assert len(line) + len(after.split()[0]) >= 80, "colours have no width"
        assert not after or after[0] in "✓–✗ 0123456789N"


def test_it_works_when_the_configuration_does_not(cli: Cli) -> None:
    path = cli.configure("files: [\n")
    ran = cli("doctor")
    assert ran.code == 1
    assert f"✗ config: {path}:1: " in ran.out
    assert "handrail config edit" in ran.out
    assert "✓ tools: " in ran.out
    assert ran.err == ""


def test_a_hook_that_stops_every_command_is_a_fault(cli: Cli) -> None:
    (cli.home / "config.yaml").write_text("hooks:\n  pre_tool_call: [{command: 'cat | ./look.sh'}]\n")
    ran = cli("doctor", "--json")
    assert ran.code == 1
    assert "hooks.pre_tool_call[0].command: ./look.sh is relative" in findings(ran.json)["config"]["detail"]


def test_a_module_that_cannot_be_imported_is_a_fault_with_its_reason(with_tools: Cli) -> None:
    with_tools.is_fresh = True
    ran = with_tools("doctor", "--json", BREAK_A_MODULE="1")
    assert ran.code == 1
    broken = findings(ran.json)["module agent/clarify.py"]
    assert broken["health"] == "broken"
    assert "ModuleNotFoundError" in broken["detail"]
    assert ran.err == ""


def test_a_toolset_of_the_user_that_names_no_tool_is_a_fault(cli: Cli) -> None:
    cli.configure("toolsets:\n  mine:\n    tools: [raed_file]\n")
    ran = cli("doctor")
    assert ran.code == 1
    assert "toolset mine: " in ran.out
    assert "did you mean 'read_file'?" in ran.out


def test_an_enabled_set_that_does_not_exist_is_a_fault(cli: Cli) -> None:
    cli.configure("tools:\n  enabled_toolsets: [fiel]\n")
    ran = cli("doctor")
    assert ran.code == 1
    assert "did you mean 'file'?" in ran.out


def test_a_state_folder_that_cannot_be_made_is_a_fault(cli: Cli, tmp_path: Path) -> None:
    cli.file("occupied", "")
    ran = cli("doctor", HANDRAIL_HOME=str(cli.cwd / "occupied"))
    assert ran.code == 1
    assert "is not a folder" in ran.out
