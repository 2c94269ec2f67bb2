"""A configuration that became weaker is not applied until a person confirms it."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from handrail import Handrail
from handrail.config.config_file import ConfigFile
from handrail.config.store import Confirmed, held_config, read_config
from handrail.config.strength import held_back, settings_in
from handrail.config.validation import build, parse
from handrail.settings.schema import Config

from ..cli.terminal import Terminal


def _config(text: str) -> Config:
    return build(parse(text).value or {})


@pytest.mark.parametrize(
    ("before", "after", "weaker"),
    [
        ("", "approvals: {mode: 'off'}", ["approvals.mode"]),
        ("", "approvals: {mode: smart}", ["approvals.mode"]),
        ("approvals: {mode: smart}", "", []),
        ("approvals: {deny: [lp, git push]}", "approvals: {deny: [lp]}", ["approvals.deny"]),
        ("approvals: {deny: [lp]}", "approvals: {deny: [git push, lp]}", []),
        ("", "approvals: {allow: [rm]}", ["approvals.allow"]),
        ("approvals: {allow: [rm, mv]}", "approvals: {allow: [mv]}", []),
        ("", "command_allowlist: ['fs.rm@home']", ["command_allowlist"]),
        ("", "approvals: {headless: queue}", ["approvals.headless"]),
        ("", "approvals: {task_uses: 1}", []),
        ("", "approvals: {task_uses: 1000}", ["approvals.task_uses"]),
        ("", "approvals: {history_max_bytes: 0}", ["approvals.history_max_bytes"]),
        ("", "approvals: {approver: mine}", ["approvals.approver"]),
        ("approval_rules: {a: {uses: [lp]}}", "", ["approval_rules.a"]),
        (
            "approval_rules: {a: {uses: [lp]}}",
            "approval_rules: {a: {uses: [lp], severity: note}}",
            ["approval_rules.a"],
        ),
        ("", "approval_rules: {a: {uses: [lp]}}", []),
        ("hooks: {PreToolUse: [{command: check}]}", "", ["hooks.PreToolUse"]),
        ("", "hooks: {PreToolUse: [{command: check}]}", ["hooks.PreToolUse"]),
        ("", "plugins: {guard: {enabled: false}}", ["plugins.guard"]),
        ("", "mcp_servers: {x: {command: y}}", ["mcp_servers.x"]),
        ("mcp_servers: {x: {command: y}}", "mcp_servers: {x: {command: z}}", ["mcp_servers.x"]),
        ("mcp_servers: {x: {command: y}}", "", []),
        ("files: {roots: [/a]}", "", ["files.roots"]),
        ("files: {roots: [/a]}", "files: {roots: [/b]}", ["files.roots"]),
        ("files: {roots: [/a, /b]}", "files: {roots: [/b]}", []),
        ("", "files: {roots: [/a]}", []),
        ("tools: {enabled_toolsets: []}", "tools: {enabled_toolsets: [terminal]}", ["tools.enabled_toolsets"]),
        ("tools: {enabled_toolsets: [todo]}", "", ["tools.enabled_toolsets"]),
        ("", "tools: {enabled_toolsets: [todo]}", []),
        ("", "terminal: {allowed_secrets: [KEY]}", ["terminal.allowed_secrets"]),
        ("terminal: {backends: {local: {sandbox: true}}}", "", ["terminal.backends"]),
        ("terminal: {backend: docker}", "", ["terminal.backend"]),
        ("", "terminal: {env: {LD_PRELOAD: /x}}", ["terminal.env"]),
        ("", "model: {base_url: 'http://elsewhere'}", ["model.base_url"]),
        ("", "skills: {folders: [/x]}", ["skills.folders"]),
        ("", "results: {max_chars: 7}", []),
    ],
)
def test_what_is_weaker_is_held_back_and_what_is_stricter_is_not(before: str, after: str, weaker: list[str]) -> None:
    old, new = _config(before), _config(after)
    held, changes = held_back(old, new)
    assert [change.key for change in changes] == weaker
    assert held == (new if not weaker else old)
    assert held_back(held, new)[0] == held
    assert build(settings_in(held)) == held


def test_the_stricter_part_of_a_change_holds_at_once() -> None:
    old = _config("approvals: {deny: [lp]}")
    held, changes = held_back(old, _config("approvals: {mode: 'off', deny: [git push]}\nresults: {max_chars: 5}"))
    assert {change.key for change in changes} == {"approvals.mode", "approvals.deny"}
    assert (held.approvals.mode, held.approvals.deny, held.results.max_chars) == ("manual", ("git push", "lp"), 5)


def test_a_first_start_confirms_and_a_weaker_file_then_waits(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = home / "config.yaml"
    file.write_text("approvals:\n  deny: [git push]\n")
    with Handrail(home=home) as app:
        assert app.config.approvals.deny == ("git push",)
    file.write_text("approvals:\n  mode: 'off'\n")
    with caplog.at_level(logging.WARNING), Handrail(home=home) as app:
        assert (app.config.approvals.mode, app.config.approvals.deny) == ("manual", ("git push",))
    assert "handrail config confirm" in caplog.text
    assert "approvals.mode: manual -> off" in caplog.text
    with Handrail(home=home, confirms=True) as app:
        assert (app.config.approvals.mode, app.config.approvals.deny) == ("off", ())
    with Handrail(home=home) as app:
        assert app.config.approvals.mode == "off"


def test_a_file_that_appears_after_a_start_without_one_waits(home: Path) -> None:
    Handrail(home=home).close()
    (home / "config.yaml").write_text("approvals:\n  mode: 'off'\n")
    with Handrail(home=home) as app:
        assert app.config.approvals.mode == "manual"


def test_what_became_stricter_is_the_new_measure(home: Path) -> None:
    file = home / "config.yaml"
    Handrail(home=home).close()
    file.write_text("approvals:\n  deny: [lp]\n")
    Handrail(home=home).close()
    file.unlink()
    with Handrail(home=home) as app:
        assert app.config.approvals.deny == ("lp",)


@pytest.mark.parametrize("damage", ["{", "[]", '{"x": 1}', '{"PATH": {"settings": {"nothing": 1}}}'])
def test_a_damaged_record_confirms_nothing_but_the_defaults(home: Path, damage: str) -> None:
    file = home / "config.yaml"
    file.write_text("approvals:\n  mode: 'off'\n")
    Handrail(home=home).close()
    (home / "state" / "confirmed.json").write_text(damage.replace("PATH", str(file)))
    assert held_config(file, home / "state", confirms=False).config.approvals.mode == "manual"


def test_what_the_command_line_writes_is_confirmed_and_nothing_else(home: Path) -> None:
    Handrail(home=home).close()
    (home / "config.yaml").write_text("approvals:\n  mode: 'off'\n")
    ConfigFile().set("approvals.allow", ["lp"])
    with Handrail(home=home) as app:
        assert (app.config.approvals.mode, app.config.approvals.allow) == ("manual", ("lp",))


def test_the_environment_of_the_start_counts(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Handrail(home=home).close()
    monkeypatch.setenv("HANDRAIL_APPROVALS_MODE", "off")
    with Handrail(home=home) as app:
        assert app.config.approvals.mode == "off"


def _started(home: Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """A start that has no terminal, as a service's."""
    env = {"HANDRAIL_HOME": str(home), "PATH": os.environ["PATH"], "HOME": str(home)}
    command = [sys.executable, "-m", "handrail", "call", "terminal", "command=lp x", "--json"]
    return subprocess.run(
        command, env=env, cwd=home, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, **options
    )


def test_a_service_keeps_what_was_confirmed_and_a_persons_start_confirms(home: Path) -> None:
    file = home / "config.yaml"
    file.write_text("approvals:\n  deny: [lp]\n")
    assert "deny list" in _started(home, start_new_session=True).stdout
    file.write_text("{}\n")
    ran = _started(home, start_new_session=True)
    assert "deny list" in ran.stdout
    assert "handrail config confirm" in ran.stderr
    env = {"HANDRAIL_HOME": str(home), "PATH": os.environ["PATH"], "HOME": str(home)}
    with Terminal(["-m", "handrail", "config", "confirm"], cwd=home, env=env, columns=200) as terminal:
        terminal.wait_for("[y/N]")
        terminal.type("y\n")
        terminal.end()
    assert "deny list" not in _started(home, start_new_session=True).stdout
    file.write_text("approvals:\n  allow: [lp]\n")
    with Terminal(["-m", "handrail", "tools", "--json"], cwd=home, env=env, columns=200) as terminal:
        terminal.end()
    assert Confirmed(home / "state").config(file) == read_config(file)
    assert json.loads((home / "state" / "confirmed.json").read_text())


def test_what_a_person_confirmed_meanwhile_is_not_taken_back_by_a_start_that_saw_less(tmp_path: Path) -> None:
    file, known = tmp_path / "config.yaml", Confirmed(tmp_path / "state")
    before, allowed = _config(""), _config("approvals: {allow: [rm]}")
    known.confirm(file, before)
    known.confirm(file, allowed)
    known.confirm(file, _config("approvals: {deny: [lp]}"), unless_confirmed_since=before)
    assert known.config(file) == allowed
