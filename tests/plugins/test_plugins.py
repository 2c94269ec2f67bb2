"""The public face of the package, and discovery from the configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from handrail import agent, approval, plugins
from tests.support import trust_plugins


@pytest.mark.parametrize("face", [agent, approval, plugins])
def test_a_face_lists_its_names_and_each_is_there(face: object) -> None:
    names = face.__all__  # type: ignore[attr-defined]
    assert dir(face) == sorted(names)
    assert all(getattr(face, name) is not None for name in names)
    with pytest.raises(AttributeError, match="no_such_name"):
        face.no_such_name  # type: ignore[attr-defined]  # noqa: B018  asking for it is the test


def test_discovering_without_plugins_finds_none(home: Path) -> None:
    assert plugins.discover_plugins() == []


def test_plugins_are_discovered_from_the_configuration(home: Path) -> None:
    (home / "plugins").mkdir()
    (home / "plugins" / "good.py").write_text(
        "def register(api):\n    api.register_tool('shout', toolset='t', handler=lambda args, **_: 'HEY',\n"
        "                      schema={'description': 'Shouts.', 'parameters': {'type': 'object', 'properties': {}}})\n"
    )
    (home / "plugins" / "off.py").write_text("")
    trust_plugins(home)
    (home / "config.yaml").write_text("plugins: {off: {enabled: false}}")
    found = plugins.discover_plugins()
    assert [(plugin.name, plugin.state) for plugin in found] == [
        ("good", plugins.State.LOADED),
        ("off", plugins.State.DISABLED),
    ]
    assert found[0].provides == {"tools": ["shout"]}
