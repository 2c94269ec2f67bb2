"""What hooks that are commands change is in the journal, as calls of their own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from handrail import Handrail
from handrail.settings.schema import Config
from handrail.settings.sections import HookCommandConfig
from handrail.testing import OpenGate


def app_with(home: Path, command: str) -> Handrail:
    hook = HookCommandConfig(command=command, matcher="write_file", timeout=20)
    app = Handrail(Config(hooks={"PostToolUse": (hook,)}), home=home)
    app.runtime.gate = OpenGate()
    return app


def test_what_a_hook_changes_is_shown_and_can_be_undone(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    formatted = tmp_path / "a.txt"
    with app_with(home, f"sed -i s/one/ONE/ {formatted}; echo seen >> {tmp_path}/log") as app:
        arguments = {"path": str(formatted), "content": "one\n"}
        app.handle_function_call("write_file", arguments, "t", session_id="s")
        assert formatted.read_text() == "ONE\n"
        hook, written = app.effects.latest()
        assert (hook.tool, hook.session, hook.coverage, written.tool) == ("hook", "s", "full", "write_file")
        told = app.effects.describe(hook.number)
        assert [one["path"] for one in told["changed"]] == [str(formatted)]
        refused = json.loads(str(app.handle_function_call("undo", {"call": hook.number}, "t", session_id="s")))
        assert (refused["error_type"], "a hook" in refused["error"]) == ("denied", True)
        assert app.undo(hook.number)["status"] == "undone"
        assert (formatted.read_text(), (tmp_path / "log").exists()) == ("one\n", False)
        assert app.undo(written.number)["status"] == "undone"
        assert not formatted.exists()


def test_a_hook_that_changes_nothing_leaves_no_record(home: Path, tmp_path: Path) -> None:
    with app_with(home, "cat >/dev/null") as app:
        app.handle_function_call("write_file", {"path": str(tmp_path / "a"), "content": "x"}, "t")
        assert [one.tool for one in app.effects.latest()] == ["write_file"]
