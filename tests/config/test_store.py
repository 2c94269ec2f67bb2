from __future__ import annotations

import os
import time

import pytest

from handrail.config.store import load_config
from handrail.errors import ConfigError
from handrail.settings.schema import Config
from handrail.settings.sections import PluginConfig, ToolsetConfig


def test_no_file_means_defaults(path):
    assert load_config(path, environ={}) == Config()


@pytest.mark.parametrize("text", ["", "\n", "# only a comment\n", "---\n", "{}\n", "null\n"])
def test_an_empty_file_means_defaults(path, text):
    path.write_text(text)
    assert load_config(path, environ={}) == Config()


def test_the_path_comes_from_the_environment_given(tmp_path):
    (tmp_path / "config.yaml").write_text("results: {keep_days: 3}\n")
    assert load_config(environ={"HANDRAIL_HOME": str(tmp_path)}).results.keep_days == 3


def test_every_section_is_read_into_its_type(path):
    path.write_text(
        """
toolsets:
  mine:
    description: My tools
    tools: [read_file, patch]
    includes: [web]
tools:
  enabled_toolsets: [mine]
  disabled_toolsets: []
  on_collision: replace
files: {roots: [/work], max_read_bytes: 1_000}
calls:
  batch_timeout: 30
  max_threads: 4.0
plugins:
  trusted: {allow_override: true}
  other:
command_allowlist:
  - git push
"""
    )
    config = load_config(path, environ={})
    assert config.toolsets == {
        "mine": ToolsetConfig(description="My tools", tools=("read_file", "patch"), includes=("web",))
    }
    assert config.tools.enabled_toolsets == ("mine",)
    assert config.tools.on_collision == "replace"
    assert config.files.roots == ("/work",)
    assert config.files.max_read_bytes == 1000
    assert (config.calls.batch_timeout, config.calls.max_threads) == (30.0, 4)
    assert (type(config.calls.batch_timeout), type(config.calls.max_threads)) == (float, int)
    assert config.plugins == {"trusted": PluginConfig(allow_override=True), "other": PluginConfig()}
    assert config.command_allowlist == ("git push",)


def test_a_section_with_all_lines_commented_out_is_at_its_defaults(path):
    path.write_text("files:\n  # roots: [/a]\ncalls:\n  max_threads: 3\n")
    config = load_config(path, environ={})
    assert config.files == Config().files
    assert config.calls.max_threads == 3


def test_aliases_stand_for_the_value_they_name(path):
    path.write_text("toolsets:\n  a: &a {tools: [x]}\n  b: *a\n")
    config = load_config(path, environ={})
    assert config.toolsets["a"] == config.toolsets["b"] == ToolsetConfig(tools=("x",))


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-8"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_files_of_other_editors_are_read(path, encoding, newline):
    path.write_bytes(f"files:{newline}  roots:{newline}    - /é{newline}".encode(encoding))
    assert load_config(path, environ={}).files.roots == ("/é",)


# Text, line, key, and a part of what the reader is told.
MISTAKES = {
    "unknown section": ("calls: {}\nfilez: {}\n", 2, "filez", "did you mean files?"),
    "unknown key": ("files:\n  rootz: [/a]\n", 2, "files.rootz", "did you mean roots?"),
    "unlike any key": ("files:\n  zzz: 1\n", 2, "files.zzz", "known: max_read_bytes, max_write_bytes, roots"),
    "unknown key of a named set": ("toolsets:\n  a:\n    toolz: []\n", 3, "toolsets.a.toolz", "did you mean tools?"),
    "merge key": ("files:\n  <<: {roots: [a]}\n", 2, "files.<<", "unknown key"),
    "text for a number": ("calls:\n\n  max_threads: many\n", 3, "calls.max_threads", "a whole number, not 'many'"),
    "fraction for an integer": ("calls:\n  max_threads: 1.5\n", 2, "calls.max_threads", "a whole number, not 1.5"),
    "true for a number": ("calls:\n  max_threads: true\n", 2, "calls.max_threads", "a whole number, not true"),
    "yaml 1.1 boolean": ("plugins:\n  p:\n    allow_override: yes\n", 3, "plugins.p.allow_override", "not 'yes'"),
    "too small": ("files:\n  max_read_bytes: 0\n", 2, "files.max_read_bytes", "at least 1, not 0"),
    "not more than zero": ("calls:\n  hook_timeout: 0\n", 2, "calls.hook_timeout", "more than 0"),
    "too large": ("calls:\n  hook_timeout: 1e300\n", 2, "calls.hook_timeout", "at most"),
    "infinite": ("calls:\n  hook_timeout: .inf\n", 2, "calls.hook_timeout", "a number, not inf"),
    "thousands of digits": (f"calls:\n  max_async: 0x{'f' * 9000}\n", 2, "calls.max_async", "60 digits"),
    "not a choice": ("tools:\n  on_collision: maybe\n", 2, "tools.on_collision", "one of refuse, replace"),
    "list item": ("files:\n  roots:\n    - /a\n    - 7\n", 4, "files.roots[1]", "must be text, not 7"),
    "empty list item": ("files:\n  roots: [/a, '']\n", 2, "files.roots[1]", "must not be empty"),
    "text for a list": ("command_allowlist: rm\n", 1, "command_allowlist", "must be a list, not 'rm'"),
    "nothing for a list": ("files:\n  roots:\n", 2, "files.roots", "must be a list, not empty"),
    "list for a section": ("calls: {}\nfiles: [a]\n", 2, "files", "must be a mapping, not a list"),
    "empty name": ("plugins:\n  '': {}\n", 1, "plugins", "empty name"),
    "key twice": ("files: {}\ncalls: {}\nfiles: {}\n", 3, "files", "set twice; it is also on line 1"),
    "inner key twice": ("files:\n  roots: []\n  roots: []\n", 3, "files.roots", "set twice"),
    "number as a key": ("toolsets:\n  1: {}\n", 2, "toolsets", "put it in quotes"),
    "list as a key": ("? [a]\n: 1\n", 1, "", "not text"),
    "date": ("files:\n  roots:\n    - 2020-01-01\n", 3, "files.roots[0]", "put it in quotes"),
    "tag": ("files:\n  roots: !!set {a}\n", 2, "files.roots", "remove it"),
    "python tag": ("files:\n  roots: !!python/object/apply:os.system [ls]\n", 2, "files.roots", "tag"),
    "loop": ("files: &f\n  roots: *f\n", 1, "files", "nested too deeply"),
    "half a character": ('command_allowlist:\n  - "\\ud800"\n', 2, "command_allowlist[0]", "surrogate"),
    "a list as the file": ("- a\n", 1, "", "must be a mapping"),
    "a word as the file": ("hello\n", 1, "", "must be a mapping"),
    "two documents": ("files: {}\n---\nfiles: {}\n", 2, "", "another document"),
    "tab": ("files:\n\troots: []\n", 2, "", "spaces, not tabs"),
    "cut off in brackets": ("files: {}\ncalls: {max_threads: \n", 2, "", "cut off"),
    "cut off in quotes": ("files: {}\ntools: {on_collision: 'ref", 2, "", "cut off"),
    "control character": ("files: {}\n\x07\n", 2, "", "U+0007"),
    "yaml 1.1": ("%YAML 1.1\n---\nfiles: {}\n", 1, "", "remove the %YAML line"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_named_with_file_line_and_key(path, mistake):
    text, line, key, told = MISTAKES[mistake]
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_config(path, environ={})
    assert (caught.value.path, caught.value.line, caught.value.key) == (str(path), line, key)
    assert str(caught.value).startswith(f"{path}:{line}: ")
    assert told in str(caught.value)


def test_of_several_mistakes_the_first_in_the_file_is_named(path):
    path.write_text("tools:\n  on_collision: x\nfiles:\n  bad: 1\ncalls:\n  max_threads: 0\n")
    with pytest.raises(ConfigError) as caught:
        load_config(path, environ={})
    assert caught.value.line == 2


def test_bytes_that_are_not_utf8_are_refused_with_their_line(path):
    path.write_bytes(b"files:\n  roots: [/\xff]\n")
    with pytest.raises(ConfigError, match="save it as UTF-8") as caught:
        load_config(path, environ={})
    assert caught.value.line == 2


def test_a_folder_in_place_of_the_file_is_refused(path):
    path.mkdir()
    with pytest.raises(ConfigError, match="not a regular file"):
        load_config(path, environ={})


def test_a_pipe_in_place_of_the_file_does_not_hang(path):
    os.mkfifo(path)
    with pytest.raises(ConfigError, match="not a regular file"):
        load_config(path, environ={})


def test_a_link_to_nothing_is_refused(path, tmp_path):
    path.symlink_to(tmp_path / "gone.yaml")
    with pytest.raises(ConfigError, match=r"gone\.yaml, which does not exist"):
        load_config(path, environ={})


def test_a_file_in_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "plain").write_text("")
    with pytest.raises(ConfigError, match="Not a directory"):
        load_config(tmp_path / "plain" / "config.yaml", environ={})


BOMBS = {
    "ten megabytes": "#" * 10_000_000,
    "aliases": "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 30)),
    "brackets": "files: " + "[" * 2000,
    "indentation": "".join(" " * depth + "a:\n" for depth in range(400)),
    "many values": "command_allowlist: [" + "a," * 150_000 + "]",
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_file_made_to_exhaust_the_reader_is_refused_quickly(path, bomb):
    path.write_text(BOMBS[bomb])
    start = time.process_time()
    with pytest.raises(ConfigError, match=r"larger than|nested too deeply|more than 20,000 values"):
        load_config(path, environ={})
    assert time.process_time() - start < 30
