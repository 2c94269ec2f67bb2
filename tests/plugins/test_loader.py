"""Which plugins are loaded, what they can bring, and what becomes of those that fail."""

from __future__ import annotations

import os
import py_compile
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from handrail.config.paths import Found, Source, entry_points, find_plugins, project_folder
from handrail.config.trust import Trust
from handrail.plugins.loader import State, trust_plugin
from handrail.settings.sections import PluginConfig

from .conftest import Bench

HELLO = '''
"""Says hello."""
def register(api):
    @api.tool(toolset="greetings")
    def hello(who: str = "world") -> str:
        """Say hello."""
        return f"hello {who}"
'''


def test_a_file_in_the_users_folder_is_a_plugin(bench: Bench) -> None:
    bench.write("greeter", HELLO)
    plugin = bench.load()["greeter"]
    assert (plugin.state, plugin.source, plugin.manifest.description) == (State.LOADED, Source.USER, "Says hello.")
    assert plugin.provides == {"tools": ["hello"]}
    assert bench.registry.dispatch("hello", {"who": "you"}) == "hello you"


def test_a_package_may_have_modules_of_its_own_and_a_manifest(bench: Bench) -> None:
    bench.write(
        "greeter",
        "from .words import WORD\nfrom . import words\n"
        "def register(api):\n    api.toolset('warm', description=WORD, tools=())\n",
        words_py="WORD = 'warm words'\n",
        plugin_yaml="name: greeter\nversion: '1.2'\ndescription: Greets.\n",
    )
    plugin = bench.load()["greeter"]
    assert plugin.state is State.LOADED, plugin.reason
    assert plugin.manifest[:3] == ("greeter", "1.2", "Greets.")
    assert bench.plugins is not None
    assert bench.plugins.contributions.toolsets["warm"].description == "warm words"


def test_functions_with_the_name_of_a_hook_are_hooks(bench: Bench) -> None:
    bench.write("watcher", "def post_tool_call(tool_name):\n    return f'saw {tool_name}'\n")
    assert bench.load()["watcher"].provides == {"hooks": ["post_tool_call"]}
    payload: dict[str, Any] = dict.fromkeys(
        "tool_name args result status error_type duration_ms task_id session_id tool_call_id".split(), "x"
    )
    assert bench.hooks.invoke("post_tool_call", **payload) == ["saw x"]


def test_marks_on_a_hook_hold(bench: Bench) -> None:
    bench.write(
        "strict",
        "from handrail import hookimpl\n@hookimpl(policy=True, timeout=3, specname='pre_tool_call')\ndef check(): pass\n",
    )
    bench.load()
    (implementation,) = bench.hooks.implementations("pre_tool_call")
    assert implementation.plugin == "strict"
    assert (implementation.options.policy, implementation.options.timeout) == (True, 3)


def test_everything_that_can_be_added_is_kept_for_those_who_use_it(bench: Bench) -> None:
    bench.write(
        "rich",
        "from handrail.judge import Rule, Severity\n"
        "class Moon: name = 'moon'\n"
        "rule = Rule('mine.rule', Severity.ASK, 'why', uses=('lp',), match=('lp x',), not_match=('ls x',))\n"
        "def register(api):\n"
        "    api.environment('moon', Moon)\n    api.approval_rule(rule)\n    api.approver('boss', object())\n"
        "    api.command('greet', lambda app: None)\n    api.model_provider('tiny', object())\n",
    )
    plugin = bench.load()["rich"]
    assert plugin.provides == {
        "environments": ["moon"],
        "approval_rules": ["mine.rule"],
        "approvers": ["boss"],
        "commands": ["greet"],
        "model_providers": ["tiny"],
    }


def test_a_plugin_gets_its_settings(bench: Bench) -> None:
    bench.write("picky", "def register(api):\n    api.toolset('picky', description=api.settings['colour'])\n")
    bench.settings["picky"] = PluginConfig(settings={"colour": "blue"})
    assert bench.load()["picky"].state is State.LOADED
    assert bench.plugins is not None
    assert bench.plugins.contributions.toolsets["picky"].description == "blue"


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import nothing_of_that_name", "nothing_of_that_name"),
        ("def (", "SyntaxError"),
        ("raise SystemExit(3)", "SystemExit"),
        ("def register(api): 1 / 0", "ZeroDivisionError"),
        ("def register(api): api.hook('pre_tool_cal', print)", "did you mean 'pre_tool_call'"),
        ("def pre_tool_call(colour): pass", "no argument colour"),
    ],
)
def test_one_that_fails_is_reported_and_hurts_no_other(bench: Bench, source: str, reason: str) -> None:
    bench.write("a_broken", source)
    bench.write("greeter", HELLO)
    found = bench.load()
    assert found["a_broken"].state is State.FAILED
    assert reason in found["a_broken"].reason
    assert found["greeter"].state is State.LOADED


def test_half_a_plugin_is_taken_back(bench: Bench) -> None:
    bench.write(
        "half",
        HELLO
        + "    api.hook('pre_tool_call', lambda: None)\n    api.toolset('half', description='')\n    raise ValueError('no')\n",
    )
    assert bench.load()["half"].state is State.FAILED
    assert bench.registry.get_all_tool_names() == []
    assert bench.hooks.implementations("pre_tool_call") == ()
    assert bench.plugins is not None
    assert bench.plugins.contributions.toolsets == {}


@pytest.mark.parametrize(
    ("manifest", "reason"),
    [
        ("name: another", "must be the same"),
        ("[1, 2]", "must be a mapping"),
        ("requires_env: X", "must be a list"),
        ("a: [", "cannot be read"),
    ],
)
def test_a_manifest_that_cannot_be_understood_says_why(bench: Bench, manifest: str, reason: str) -> None:
    bench.write("odd", "", plugin_yaml=manifest)
    plugin = bench.load()["odd"]
    assert plugin.state is State.FAILED
    assert reason in plugin.reason


def test_a_plugin_that_lacks_a_variable_is_not_loaded(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.write("needy", "raise RuntimeError", plugin_yaml="requires_env: [NEEDY_KEY]")
    plugin = bench.load()["needy"]
    assert (plugin.state, plugin.reason) == (State.UNAVAILABLE, "set NEEDY_KEY in the environment")


def test_a_plugin_that_is_switched_off_is_not_imported(bench: Bench) -> None:
    bench.write("loud", "raise RuntimeError('imported')")
    bench.settings["loud"] = PluginConfig(enabled=False)
    assert bench.load()["loud"].state is State.DISABLED


def test_unloading_takes_everything_back(bench: Bench, builtin: Callable[[], Any]) -> None:
    bench.write(
        "greeter", HELLO + "    api.hook('pre_tool_call', lambda: None)\n    api.register_tool('theirs', toolset='mine', "
        "schema={'description': 'x', 'parameters': {}}, handler=lambda args, **_: 'mine', override=True)\n"
    )  # fmt: skip
    bench.settings["greeter"] = PluginConfig(allow_override=True)
    bench.load()
    assert builtin() == "mine"
    assert bench.plugins is not None
    bench.plugins.unload()
    assert bench.registry.get_all_tool_names() == ["theirs"]
    assert builtin() == "built in"
    assert not bench.hooks.active


# A project's plugins


def test_a_projects_plugin_runs_only_when_it_is_trusted(bench: Bench) -> None:
    place = bench.write("local_one", HELLO, project=True)
    assert bench.load()["local_one"].state is State.UNTRUSTED
    assert bench.registry.get_all_tool_names() == []
    trust_plugin(Found(place.stem, Source.PROJECT, str(place)))
    assert bench.load()["local_one"].state is State.LOADED


@pytest.mark.parametrize("inner", ["__init__.py", "inner.py", "data.txt", "new.py"])
def test_any_change_has_to_be_trusted_again(bench: Bench, inner: str) -> None:
    place = bench.write("local_one", HELLO, project=True, inner_py="A = 1", plugin_yaml="version: '1'")
    (place / "data.txt").write_text("x")
    trust_plugin(Found(place.stem, Source.PROJECT, str(place)))
    assert bench.load()["local_one"].state is State.LOADED
    (place / inner).write_text("# changed\n")
    assert bench.load()["local_one"].state is State.UNTRUSTED


def test_what_was_looked_at_is_what_is_imported(bench: Bench) -> None:
    """A compiled file that lies beside a trusted source is not used, and neither is a source that changes later."""
    place = bench.write(
        "local_one", "from . import inner\nVALUE = inner.VALUE\n", project=True, inner_py="VALUE = 'good'\n"
    )
    trust_plugin(Found(place.stem, Source.PROJECT, str(place)))
    evil = place / "evil.py"
    evil.write_text("VALUE = 'evil'\n")
    py_compile.compile(str(evil), cfile=str(place / "inner.pyc"))
    cached = place / "__pycache__" / f"inner.{sys.implementation.cache_tag}.pyc"
    cached.parent.mkdir(exist_ok=True)
    (place / "inner.pyc").replace(cached)
    source = place / "inner.py"
    stat = source.stat()
    data = bytearray(cached.read_bytes())
    data[8:16] = int(stat.st_mtime).to_bytes(4, "little") + stat.st_size.to_bytes(4, "little")
    cached.write_bytes(data)
    evil.unlink()
    assert bench.load()["local_one"].state is State.LOADED
    assert sys.modules["handrail_plugins.local_one"].VALUE == "good"


def test_a_link_out_of_the_plugin_is_refused(bench: Bench, tmp_path: Path) -> None:
    place = bench.write("local_one", "", project=True, inner_py="")
    (tmp_path / "elsewhere.py").write_text("")
    (place / "linked.py").symlink_to(tmp_path / "elsewhere.py")
    plugin = bench.load()["local_one"]
    assert plugin.state is State.FAILED
    assert "is a link" in plugin.reason


def test_a_projects_plugin_cannot_take_the_place_of_the_users(bench: Bench) -> None:
    bench.write("greeter", HELLO)
    place = bench.write("greeter", "raise RuntimeError", project=True)
    trust_plugin(Found(place.stem, Source.PROJECT, str(place)))
    bench.load()
    assert bench.plugins is not None
    assert [plugin.state for plugin in bench.plugins.found] == [State.LOADED, State.SHADOWED]


def test_trust_can_be_taken_back_from_a_plugin(bench: Bench) -> None:
    place = bench.write("local_one", HELLO, project=True)
    trust_plugin(Found(place.stem, Source.PROJECT, str(place)))
    Trust().revoke("plugin", place)
    assert bench.load()["local_one"].state is State.UNTRUSTED


def test_the_project_is_the_nearest_above_but_not_the_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "home" / ".handrail").mkdir(parents=True)
    inner = tmp_path / "home" / "work" / "deep"
    inner.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert project_folder(inner) is None
    (tmp_path / "home" / "work" / ".handrail").mkdir()
    assert project_folder(inner) == tmp_path / "home" / "work" / ".handrail"


# What pip installed


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A real package that pip built and installed, in a folder of its own."""
    source = tmp_path / "source"
    (source / "greeting_plugin").mkdir(parents=True)
    (source / "greeting_plugin" / "__init__.py").write_text(HELLO)
    (source / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
        '[project]\nname = "greeting-plugin"\nversion = "3.1"\ndescription = "Greets from pip."\n'
    )
    # A backend of ten lines, so that the test needs nothing from an index.
    (source / "backend.py").write_text(
        "import zipfile\n"
        "def build_wheel(folder, config_settings=None, metadata_directory=None):\n"
        "    name = 'greeting_plugin-3.1-py3-none-any.whl'\n"
        "    info = 'greeting_plugin-3.1.dist-info/'\n"
        "    with zipfile.ZipFile(f'{folder}/{name}', 'w') as wheel:\n"
        "        wheel.write('greeting_plugin/__init__.py')\n"
        "        wheel.writestr(info + 'METADATA', 'Metadata-Version: 2.1\\nName: greeting-plugin\\nVersion: 3.1\\n'\n"
        "                       'Summary: Greets from pip.\\n')\n"
        "        wheel.writestr(info + 'WHEEL', 'Wheel-Version: 1.0\\nGenerator: us\\nRoot-Is-Purelib: true\\n'\n"
        "                       'Tag: py3-none-any\\n')\n"
        "        wheel.writestr(info + 'entry_points.txt', '[handrail]\\ngreeting = greeting_plugin\\n')\n"
        "        wheel.writestr(info + 'RECORD', '')\n"
        "    return name\n"
    )
    target = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(target)]
    subprocess.run([*pip, str(source)], check=True, env={**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"})
    monkeypatch.syspath_prepend(str(target))
    monkeypatch.setattr(sys, "path", [str(target), *sys.path])
    return target


def test_an_installed_package_is_a_plugin(bench: Bench, installed: Path) -> None:
    plugin = bench.load()["greeting"]
    try:
        assert plugin.state is State.LOADED, plugin.reason
        assert (plugin.source, plugin.manifest.version) == (Source.PIP, "3.1")
        assert bench.registry.get_entry("hello").owner == "greeting"  # type: ignore[union-attr]
    finally:
        sys.modules.pop("greeting_plugin", None)


def test_what_is_installed_is_remembered_until_the_folder_changes(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.setattr(sys, "path", [str(site)])
    assert entry_points("handrail") == []
    info = site / "x-1.dist-info"
    info.mkdir()
    (info / "entry_points.txt").write_text(
        "[console_scripts]\na = b\n[handrail]\n# no\nx = x.y:z [extra]\n\n[other]\nq = r\n"
    )
    os.utime(site, ns=(1, 1))
    assert entry_points("handrail") == [("x", "x.y:z")]
    (info / "entry_points.txt").unlink()
    assert entry_points("handrail") == [("x", "x.y:z")]


def test_looking_for_plugins_where_there_are_none_imports_no_metadata(home: Path) -> None:
    code = (
        "import sys\nfrom handrail.config.paths import find_plugins\nlist(find_plugins())\n"
        "assert 'importlib.metadata' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=home)
    assert sysconfig.get_path("purelib")
    assert list(find_plugins(home)) == []
