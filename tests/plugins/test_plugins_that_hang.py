"""A plugin that hangs or tries to end the program while it loads is named, and everything else works."""

from __future__ import annotations

from pathlib import Path

import pytest

from handrail import Config, Handrail
from handrail.plugins.loader import State
from handrail.settings.sections import CallsConfig
from tests.support import configure, trust_plugins

from .. import fork_server

HANGS = """
import pathlib, time
while not pathlib.Path({release!r}).exists():
    time.sleep(0.05)
"""
HANGS_AFTER_A_TOOL = """
import pathlib, time
def register(api):
    api.register_tool(name="early", toolset="t", handler=lambda args, **_: "x",
                      schema=dict(description="d", parameters=dict(type="object", properties=dict())))
    while not pathlib.Path({release!r}).exists():
        time.sleep(0.05)
    api.hook("pre_tool_call", lambda: None)
"""


def plugin(home: Path, name: str, source: str) -> None:
    folder = home / "plugins" / name
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(source)


@pytest.mark.parametrize("source", [HANGS, HANGS_AFTER_A_TOOL])
def test_one_that_hangs_is_left_out_and_the_next_one_loads(tmp_path: Path, source: str) -> None:
    release = tmp_path / "release"
    plugin(tmp_path, "a_hangs", source.format(release=str(release)))
    plugin(tmp_path, "b_works", "def pre_tool_call(tool_name): pass\n")
    trust_plugins(tmp_path)
    with Handrail(Config(calls=CallsConfig(plugin_timeout=0.5)), home=tmp_path) as app:
        assert app.plugins is not None
        found = {each.name: each for each in app.plugins.found}
        assert found["a_hangs"].state is State.FAILED
        assert "0.5 s" in found["a_hangs"].reason
        assert "plugins disable a_hangs" in found["a_hangs"].reason
        assert found["b_works"].state is State.LOADED
        assert app.registry.get_entry("early") is None
        release.touch()


@pytest.mark.parametrize("raises", ["KeyboardInterrupt", "GeneratorExit", "type('Own', (BaseException,), {})"])
def test_one_that_raises_what_ends_programs_is_named(tmp_path: Path, raises: str) -> None:
    plugin(tmp_path, "bad", f"raise {raises}\n")
    trust_plugins(tmp_path)
    with Handrail(Config(), home=tmp_path) as app:
        assert app.plugins is not None
        assert [each.state for each in app.plugins.found] == [State.FAILED]


@pytest.mark.parametrize("command", [["doctor"], ["plugins", "list"], ["call", "read_file", "path=/etc/hostname"]])
def test_no_command_hangs_with_it_and_each_names_it(tmp_path: Path, command: list[str]) -> None:
    plugin(tmp_path, "sleepy", HANGS.format(release=str(tmp_path / "never")))
    configure(tmp_path, "calls:\n  plugin_timeout: 0.5\n")
    trust_plugins(tmp_path)
    ran = fork_server.run(
        "-m", "handrail", *command, env={"HANDRAIL_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}, cwd=tmp_path
    )
    text = " ".join((ran.stdout + ran.stderr).split())  # it may be wrapped
    assert "sleepy" in text
    assert "0.5 s" in text
