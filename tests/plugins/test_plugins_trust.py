"""Your own plugins and those of pip are loaded once their content is trusted."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from handrail import Handrail
from handrail.config.paths import Found, Source
from handrail.plugins.loader import State, trust_plugin

from ..cli.terminal import Terminal
from ..support import trust_plugins

_CODE = "with open({marker!r}, 'a') as file:\n    file.write('loaded ')\ndef register(api):\n    pass\n"


def _state(home: Path) -> tuple[State, str]:
    with Handrail(home=home) as app:
        assert app.plugins is not None
        plugin = app.plugins.found[0]
        return plugin.state, plugin.reason


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    return tmp_path / "marker"


@pytest.fixture
def plugin(home: Path, marker: Path) -> Path:
    path = home / "plugins" / "mine.py"
    path.parent.mkdir()
    path.write_text(_CODE.format(marker=str(marker)))
    return path


def test_a_plugin_of_the_users_waits_for_trust_and_again_after_a_change(
    home: Path, plugin: Path, marker: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert _state(home)[0] is State.UNTRUSTED
    assert "handrail plugins trust mine" in caplog.text
    assert not marker.exists()
    trust_plugins(home)
    assert _state(home)[0] is State.LOADED
    plugin.write_text(plugin.read_text() + "\n")
    state, reason = _state(home)
    assert (state, "has changed since it was trusted" in reason) == (State.UNTRUSTED, True)
    assert marker.read_text() == "loaded "


def test_an_installed_plugin_is_trusted_by_content_and_imported_as_it_was_read(
    home: Path, tmp_path: Path, marker: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, name = tmp_path / "site", "handrail_test_installed"
    package = site / name
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("from . import inner\n" + _CODE.format(marker=str(marker)))
    (package / "inner.py").write_text("")
    info = site / "installed-1.0.dist-info"
    info.mkdir()
    (info / "entry_points.txt").write_text(f"[handrail]\ninstalled = {name}\n")
    monkeypatch.syspath_prepend(str(site))
    assert _state(home)[0] is State.UNTRUSTED
    trust_plugins(home)
    assert _state(home)[0] is State.LOADED
    for each in [each for each in sys.modules if each.startswith(name)]:
        del sys.modules[each]
    (package / "inner.py").write_text(_CODE.format(marker=str(marker)))
    assert _state(home)[0] is State.UNTRUSTED
    assert marker.read_text() == "loaded "
    trust_plugin(Found("installed", Source.PIP, name))


def test_at_a_terminal_you_are_asked_once(home: Path, plugin: Path, marker: Path) -> None:
    env = {"HANDRAIL_HOME": str(home), "PATH": os.environ["PATH"], "HOME": str(home)}
    for answer, loaded in (("n\n", False), (None, False)):
        with Terminal(["-m", "handrail", "plugins", "list"], cwd=home, env=env, columns=200) as terminal:
            if answer:
                terminal.wait_for("[y/N]")
                terminal.type(answer)
            terminal.end()
            assert ("[y/N]" in terminal.text) == bool(answer)
        assert marker.exists() == loaded
    plugin.write_text(plugin.read_text() + "# more\n")
    with Terminal(["-m", "handrail", "plugins", "list"], cwd=home, env=env, columns=200) as terminal:
        terminal.wait_for("[y/N]")
        terminal.type("y\n")
        terminal.end()
    assert marker.read_text() == "loaded "
