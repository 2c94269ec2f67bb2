"""The files that hooks run: found beside the configuration, pinned to their content, never taken from the current folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from handrail import Handrail
from handrail.config.store import resolved
from handrail.errors import ConfigError

_DENY = "#!/bin/sh\ncat >/dev/null\necho no >&2\nexit 2\n"
_PASS = "#!/bin/sh\nexit 0\n"


def _script(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where an agent may write, and where Handrail is started."""
    folder = tmp_path / "project"
    _script(folder / "check.sh", _PASS)
    monkeypatch.chdir(folder)
    return folder


def _read(app: Handrail) -> dict[str, str]:
    answer = app.handle_function_call("read_file", {"path": "/proc/version"})
    assert isinstance(answer, str)
    found: dict[str, str] = json.loads(answer)
    return found


@pytest.mark.parametrize("command", ["./check.sh", "sh check.sh", "sh ./check.sh"])
def test_a_relative_hook_is_the_one_beside_the_configuration(home: Path, project: Path, command: str) -> None:
    _script(home / "check.sh", _DENY)
    (home / "config.yaml").write_text(f"hooks:\n  PreToolUse: [{{command: '{command}', policy: true}}]\n")
    with Handrail(home=home) as app:
        assert _read(app)["error_type"] == "denied"


@pytest.mark.parametrize("command", ["./check.sh", "sh check.sh", "cat | ./check.sh", "../project/check.sh"])
def test_a_hook_that_only_the_current_folder_has_is_refused_at_the_start(
    home: Path, project: Path, command: str
) -> None:
    (home / "config.yaml").write_text(f"hooks:\n  PreToolUse: [{{command: '{command}'}}]\n")
    with pytest.raises(ConfigError, match=r"hooks.PreToolUse\[0\].command|check.sh"):
        Handrail(home=home)


def test_a_changed_policy_hook_blocks_until_it_is_confirmed(
    home: Path, project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    script = project / "gate.sh"
    _script(script, _DENY)
    (home / "config.yaml").write_text(f"hooks:\n  PreToolUse: [{{command: {script}, policy: true}}]\n")
    with Handrail(home=home) as app:
        assert _read(app)["error_type"] == "denied"
        _script(script, _PASS)
        assert "was blocked" in _read(app)["error"]
    with Handrail(home=home) as app:  # a service's start does not take the new one either
        assert "was blocked" in _read(app)["error"]
    assert caplog.text.count("has changed since it was confirmed") == 2
    with Handrail(home=home, confirms=True) as app:
        assert "error" not in _read(app)


def test_what_is_no_file_of_ours_stays_as_it_is(tmp_path: Path) -> None:
    for command in ("jq -r .tool_name", "/bin/cat", "cat >/dev/null; exit 2", "make lint", 'python3 -c "print(1)"'):
        assert resolved(command, tmp_path) == (command, ())


def test_a_hook_in_the_home_folder_is_found_and_pinned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    script = str(tmp_path / "hooks/look.sh")
    _script(Path(script), _PASS)
    assert resolved("~/hooks/look.sh", tmp_path) == (script, (script,))
    assert resolved("sh ~/hooks/look.sh -v", tmp_path) == (f"sh {script} -v", (script,))
    for command in ("'~/hooks/look.sh'", "~other/look.sh", "~/hooks/look.sh | cat"):
        with pytest.raises(ConfigError, match=r"look.sh is relative"):
            resolved(command, tmp_path)


def test_a_module_of_the_current_folder_is_no_hook(home: Path, project: Path) -> None:
    (project / "checker.py").write_text("import sys\nopen('marker', 'w')\nsys.exit(0)\n")
    (home / "config.yaml").write_text("hooks:\n  PreToolUse: [{command: python3 -m checker, policy: true}]\n")
    with Handrail(home=home) as app:
        assert _read(app)["error_type"] == "denied"
    assert not (project / "marker").exists()
