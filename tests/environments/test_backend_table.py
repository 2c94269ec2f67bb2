"""Backends are found by their names: here, in installed packages, and as plugins add them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from handrail.environments import backend_table as module
from handrail.environments.backend_table import Backends, is_host
from handrail.environments.backends.local import LocalBackend
from handrail.environments.errors import UnknownEnvironment
from handrail.errors import InvalidArguments

PACKAGE = """
class MoonEnvironment:
    name = "moon"
    from_settings = check = prune = None
"""
METADATA = "Metadata-Version: 2.1\nName: moon\nVersion: 1\n"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package with two backends, of which one cannot be loaded."""
    (tmp_path / "moon_package.py").write_text(PACKAGE)
    info = tmp_path / "moon-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(METADATA)
    (info / "entry_points.txt").write_text(
        "[handrail.environments]\nmoon = moon_package:MoonEnvironment\nbroken = moon_package:Nothing\n"
        "local = moon_package:MoonEnvironment\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    module._entry_points.cache_clear()
    yield
    module._entry_points.cache_clear()
    sys.modules.pop("moon_package", None)


def test_local_is_there() -> None:
    backend = Backends().get("local")
    assert backend is LocalBackend
    assert is_host(backend)


@pytest.mark.parametrize("name", Backends().names())
def test_every_backend_has_what_a_backend_needs(name: str) -> None:
    backend = Backends().get(name)
    assert backend.name == name
    assert callable(backend.from_settings)
    assert callable(backend.check)
    assert callable(backend.prune)


def test_an_old_name_means_the_same() -> None:
    table = Backends()
    apptainer: Any = SimpleNamespace(name="apptainer")
    table.add(apptainer)
    assert table.get("singularity").name == "apptainer"


def test_what_is_no_backend_is_not_listed() -> None:
    assert "live" not in Backends().names()


def test_an_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(UnknownEnvironment, match="unknown environment 'locla'; did you mean 'local'"):
        Backends().get("locla")


def test_an_installed_package_brings_its_own(installed: None) -> None:
    assert Backends().get("moon").name == "moon"
    assert {"moon", "broken"} <= set(Backends().names())


def test_one_that_cannot_be_loaded_says_why(installed: None) -> None:
    with pytest.raises(UnknownEnvironment, match="cannot be loaded from moon_package:Nothing"):
        Backends().get("broken")


def test_nobody_takes_the_name_of_a_built_in_one(installed: None) -> None:
    table = Backends()
    table.add(SimpleNamespace(name="local"))  # type: ignore[arg-type]
    assert table.get("local") is LocalBackend


def test_a_plugin_can_add_one() -> None:
    table = Backends()
    mars: Any = SimpleNamespace(name="mars")
    table.add(mars)
    assert table.get("mars") is mars
    assert "mars" in table.names()


def test_listing_the_names_imports_none_of_them() -> None:
    code = (
        "import sys; from handrail.environments.backend_table import backends; backends.names(); "
        "print([name for name in sys.modules if name.endswith(('environments.local', 'environments.live'))])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sandbx": True}, "unknown setting 'sandbx'; did you mean 'sandbox'"),
        ({"sandbox": "yes"}, "sandbox must be a bool, not 'yes'"),
        ({"writable": "/x"}, "writable must be a list, not '/x'"),
    ],
)
def test_a_setting_that_local_does_not_know_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArguments, match=message):
        LocalBackend.from_settings(settings, task_id="t", cwd="/", env={})


def test_local_says_what_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    missing = LocalBackend.check({})
    assert missing is not None
    assert "bash is not installed" in str(missing)
    (tmp_path / "bash").symlink_to("/bin/bash")
    assert LocalBackend.check({}) is None
    monkeypatch.setattr("handrail.environments.shell_host.landlock.abi", lambda: 0)
    monkeypatch.setattr("handrail.environments.sandbox.can_make_namespaces", lambda: False)
    sandbox = LocalBackend.check({"sandbox": True})
    assert sandbox is not None
    assert "bwrap" in sandbox.reason
