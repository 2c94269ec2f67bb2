from __future__ import annotations

import os
import stat
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from handrail.config.config_file import ConfigFile
from handrail.errors import ConfigError
from handrail.settings.schema import Config

if TYPE_CHECKING:
    from collections.abc import Iterator

COMMENTED = """\
# My settings.
command_allowlist:
    - "git push"  # asked on Monday
    - rm -rf build

# What the file tools may touch.
files:     # kept small
    max_read_bytes: 0x100
    roots: [/a, '/b']   # both disks

calls:
    # hook_timeout: 9
tools: {on_collision: 'refuse'}  # the safe way
"""


def test_a_value_that_is_set_can_be_read_back(file):
    file.set("files.roots", ["/a", "/b"])
    file.set("calls.batch_timeout", 30)
    assert file.get("files.roots") == ["/a", "/b"]
    assert file.get("calls.batch_timeout") == 30
    assert file.load().files.roots == ("/a", "/b")


def test_set_returns_the_configuration_that_then_holds(file):
    assert file.set("results.keep_days", 2) == file.load()


def test_getting_what_is_not_set_gives_the_default(file):
    assert file.get("calls.max_threads") == Config().calls.max_threads
    assert file.get("plugins.unheard_of.allow_override") is False
    assert file.get("toolsets.unheard_of") is None
    assert file.get("results")["keep_days"] == Config().results.keep_days
    assert not file.path.exists()


def test_unsetting_brings_the_default_back(file):
    file.set("calls.max_threads", 3)
    file.unset("calls.max_threads")
    assert file.get("calls.max_threads") == Config().calls.max_threads


def test_unsetting_what_is_not_set_changes_nothing(file, path):
    path.write_text(COMMENTED)
    before = path.stat()
    file.unset("plugins.p.allow_override")
    file.set("tools.on_collision", "refuse")
    assert path.read_text() == COMMENTED
    assert path.stat().st_ino == before.st_ino, "an unchanged file is not replaced"


def test_comments_order_indentation_and_quotes_survive_changes(file, path):
    path.write_text(COMMENTED)
    file.update(lambda settings: settings["command_allowlist"].append("make clean"))
    file.set("files.max_write_bytes", 5)
    file.update(lambda settings: settings["files"]["roots"].append("/c"))
    file.set("calls.max_threads", 4)
    file.set("tools.on_collision", "replace")
    file.set("toolsets.mine", {"description": "a: b", "tools": ["x", "off"]})
    assert (
        path.read_text()
        == """\
# My settings.
command_allowlist:
    - "git push"  # asked on Monday
    - rm -rf build
    - make clean

# What the file tools may touch.
files:     # kept small
    max_read_bytes: 0x100
    roots: [/a, '/b', '/c']   # both disks
    max_write_bytes: 5

calls:
  max_threads: 4
    # hook_timeout: 9
tools: {on_collision: 'replace'}  # the safe way
toolsets:
  mine:
    description: "a: b"
    tools:
      - x
      - "off"
"""
    )


def test_unset_removes_the_keys_own_lines_and_no_others(file, path):
    path.write_text(COMMENTED)
    file.unset("command_allowlist")
    file.unset("files.max_read_bytes")
    file.unset("tools.on_collision")
    assert (
        path.read_text()
        == """\
# My settings.

# What the file tools may touch.
files:     # kept small
    roots: [/a, '/b']   # both disks

calls:
    # hook_timeout: 9
tools: {}  # the safe way
"""
    )


def test_a_list_item_is_replaced_or_removed_in_its_place(file, path):
    path.write_text("files:\n  roots:\n  - /a # one\n  # between\n  - /b # two\n  - /c # three\n")
    file.set("files.roots", ["/a", "/z", "/c"])
    assert path.read_text() == "files:\n  roots:\n  - /a # one\n  # between\n  - /z # two\n  - /c # three\n"
    file.set("files.roots", ["/z", "/c"])
    assert path.read_text() == "files:\n  roots:\n  # between\n  - /z # two\n  - /c # three\n"
    file.set("files.roots", [])
    assert path.read_text() == "files:\n  roots: []\n  # between\n"


def test_a_file_of_comments_keeps_them(file, path):
    path.write_text("# Nothing set yet.\n# files:\n#   roots: []")
    file.set("files.roots", ["/a"])
    assert path.read_text() == "# Nothing set yet.\n# files:\n#   roots: []\nfiles:\n  roots:\n    - /a\n"


def test_windows_line_ends_are_kept(file, path):
    path.write_bytes(b"files:\r\n  roots:\r\n    - /a # one\r\n")
    file.update(lambda settings: settings["files"]["roots"].append("/b"))
    assert path.read_bytes() == b"files:\r\n  roots:\r\n    - /a # one\r\n    - /b\r\n"


@pytest.mark.parametrize(
    "text",
    [
        "toolsets:\n  a: &a {tools: [x]}\n  b: *a\n",
        "files: {roots: [\n  /a, # one\n  /b]}\n",
        "? files\n: {roots: [/a]}\n",
    ],
)
def test_a_file_that_cannot_be_changed_without_harm_stays_as_it_was(file, path, text):
    path.write_text(text)
    with pytest.raises(ConfigError, match="edit it by hand"):
        file.set("files", {"max_read_bytes": 1})
    assert path.read_text() == text


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("files.max_read_bytes", "lots", "must be a whole number"),
        ("calls.hook_timeout", float("nan"), "must be a number"),
        ("files.roots", ["/a", 7], "must be text, not 7"),
        ("files.roots", ["\ud800"], "surrogate"),
        ("toolsets.mine", {"toolz": []}, "did you mean tools?"),
        ("toolsets.mine", {1: []}, "not text"),
        ("files.roots", {"/a"}, "a set cannot be stored"),
        ("command_allowlist", ["x" * 2_000_000], "larger than"),
    ],
)
def test_an_invalid_change_is_refused_and_the_file_stays_as_it_was(file, path, key, value, told):
    path.write_text(COMMENTED)
    with pytest.raises(ConfigError) as caught:
        file.set(key, value)
    assert told in str(caught.value)
    assert path.read_text() == COMMENTED


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("filez", "did you mean files?"),
        ("files.root", "did you mean roots?"),
        ("files.roots.first", "files.roots has no keys below it"),
        ("plugins..allow_override", "a name of your choice"),
        ("", "unknown key"),
    ],
)
def test_an_unknown_key_is_refused_with_a_suggestion(file, key, told):
    for use in (file.get, file.unset, lambda key: file.set(key, 1)):
        with pytest.raises(ConfigError) as caught:
            use(key)
        assert told in str(caught.value)
    assert not file.path.exists()


def test_a_name_with_a_dot_is_given_as_a_tuple(file):
    file.set(("plugins", "my.plugin", "allow_override"), True)
    assert file.load().plugins["my.plugin"].allow_override
    assert file.get(("plugins", "my.plugin"))["allow_override"] is True


def test_a_file_that_is_already_invalid_is_not_touched(file, path):
    path.write_text("files:\n  rootz: []\n")
    with pytest.raises(ConfigError, match="rootz"):
        file.set("calls.max_threads", 1)
    assert path.read_text() == "files:\n  rootz: []\n"


def test_a_function_that_fails_changes_nothing(file, path):
    path.write_text(COMMENTED)

    def fail(settings):
        settings.clear()
        raise KeyError("mine")

    with pytest.raises(KeyError):
        file.update(fail)
    assert path.read_text() == COMMENTED
    file.set("calls.max_threads", 1)  # the lock is free again


def test_paths_and_tuples_are_written_as_text_and_lists(file):
    file.set("files.roots", (Path("/a"), "/b"))
    assert file.get("files.roots") == ["/a", "/b"]


def test_a_new_file_and_its_folder_are_for_the_user_only(tmp_path):
    path = tmp_path / "new" / "config.yaml"
    ConfigFile(path).set("files.roots", ["/a"])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_the_mode_of_a_file_is_kept(file, path):
    path.write_text(COMMENTED)
    path.chmod(0o640)
    file.set("calls.max_threads", 1)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_symbolic_link_is_followed_and_stays_a_link(tmp_path):
    target = tmp_path / "dotfiles" / "handrail.yaml"
    target.parent.mkdir()
    target.write_text("# mine\n")
    link = tmp_path / "config.yaml"
    link.symlink_to("dotfiles/handrail.yaml")
    ConfigFile(link).set("calls.max_threads", 1)
    assert link.is_symlink()
    assert target.read_text() == "# mine\ncalls:\n  max_threads: 1\n"
    assert ConfigFile(link).get("calls.max_threads") == 1


def test_only_the_file_and_its_lock_are_left(file, path):
    (path.parent / "somebody-elses.tmp").write_text("")
    file.set("calls.max_threads", 1)
    assert sorted(os.listdir(path.parent)) == ["config.yaml", "config.yaml.lock", "somebody-elses.tmp"]


@contextmanager
def as_ordinary_user() -> Iterator[None]:
    """Root may write anywhere, so there the effective user is changed for a moment."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def closed_folder() -> Iterator[Path]:
    # Not tmp_path, whose parents only its owner may enter.
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = ConfigFile(folder / "config.yaml")
        for _ in range(2):  # also imports what is imported late
            file.set("calls.max_threads", 1)
        folder.chmod(0o555)
        yield folder
        folder.chmod(0o700)


def test_a_folder_that_cannot_be_written_gives_an_error_and_the_file_stays(closed_folder):
    file = ConfigFile(closed_folder / "config.yaml")
    file.path.chmod(0o666)
    (closed_folder / "config.yaml.lock").chmod(0o666)
    before = file.path.read_text()
    with as_ordinary_user(), pytest.raises(ConfigError, match=r"config\.yaml: cannot be written: Permission denied"):
        file.set("calls.max_threads", 2)
    assert file.path.read_text() == before


def test_a_new_file_in_a_folder_that_cannot_be_written_gives_an_error(closed_folder):
    file = ConfigFile(closed_folder / "other.yaml")
    with as_ordinary_user(), pytest.raises(ConfigError, match="cannot be locked for a change: Permission denied"):
        file.set("calls.max_threads", 2)
    assert not file.path.exists()


def test_a_file_that_may_not_be_read_gives_an_error(closed_folder):
    file = ConfigFile(closed_folder / "config.yaml")
    file.path.chmod(0o000)
    with as_ordinary_user(), pytest.raises(ConfigError, match="cannot be read: Permission denied"):
        file.load()
