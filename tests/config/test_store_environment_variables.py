from __future__ import annotations

import os

import pytest

from handrail.config.config_file import ConfigFile
from handrail.config.store import load_config, parse_value
from handrail.errors import ConfigError
from handrail.settings.schema import Config


def load(path, **variables: str) -> Config:
    return load_config(path, environ=variables)


def test_a_variable_overrides_the_default_without_a_file(path):
    assert load(path, HANDRAIL_CALLS_BATCH_TIMEOUT="30").calls.batch_timeout == 30


def test_a_variable_overrides_the_file_and_leaves_its_neighbours(path):
    path.write_text("calls:\n  batch_timeout: 10\n  max_threads: 3\n")
    calls = load(path, HANDRAIL_CALLS_BATCH_TIMEOUT="2.5").calls
    assert (calls.batch_timeout, calls.max_threads) == (2.5, 3)


@pytest.mark.parametrize(
    ("text", "roots"),
    [
        (os.pathsep.join(["/a", "/b c"]), ("/a", "/b c")),
        ("/only", ("/only",)),
        ('["/a:b", /c]', ("/a:b", "/c")),
        ("[]", ()),
    ],
)
def test_a_list_is_separated_like_a_path_or_written_in_brackets(path, text, roots):
    assert load(path, HANDRAIL_FILES_ROOTS=text).files.roots == roots


def test_null_takes_back_a_choice_of_the_file(path):
    path.write_text("tools: {enabled_toolsets: [web]}\n")
    assert load(path, HANDRAIL_TOOLS_ENABLED_TOOLSETS="null").tools.enabled_toolsets is None


def test_text_is_taken_as_it_is(path):
    assert load(path, HANDRAIL_TOOLS_ON_COLLISION="replace").tools.on_collision == "replace"


@pytest.mark.parametrize(
    ("variable", "value", "told"),
    [
        ("HANDRAIL_CALLS_BATCH_TIMEOUT", "30s", "must be a number, not '30s'"),
        ("HANDRAIL_CALLS_BATCH_TIMEOUT", "", "is empty"),
        ("HANDRAIL_CALLS_BATCH_TIMEOUT", "-1", "more than 0"),
        ("HANDRAIL_CALLS_MAX_THREADS", "[1", "not valid YAML"),
        ("HANDRAIL_FILES_ROOTS", "", "is empty"),
        ("HANDRAIL_FILES_ROOTS", f"/a{os.pathsep}", "must not be empty text"),
        ("HANDRAIL_TOOLS_ON_COLLISION", "perhaps", "one of refuse, replace"),
        ("HANDRAIL_CALLS_BATCH_TIMEOUTT", "30", "did you mean HANDRAIL_CALLS_BATCH_TIMEOUT?"),
        ("HANDRAIL_FILES_QQQ", "1", "known: HANDRAIL_FILES_MAX_READ_BYTES"),
        ("HANDRAIL_TOOLS", "x", "unknown setting"),
        ("HANDRAIL_PLUGINS_P_ALLOW_OVERRIDE", "true", "set it in config.yaml"),
        ("HANDRAIL_TOOLSETS_MINE", "x", "set it in config.yaml"),
        ("HANDRAIL_COMMAND_ALLOWLIST", "rm", "set it in config.yaml"),
    ],
)
def test_a_variable_that_cannot_be_used_is_named(path, variable, value, told):
    with pytest.raises(ConfigError) as caught:
        load(path, **{variable: value})
    assert caught.value.key == variable
    assert variable in str(caught.value)
    assert told in str(caught.value)


def test_other_variables_with_the_prefix_are_not_settings(path):
    others = {"HANDRAIL_HOME": "/x", "HANDRAIL_MODELS": "m", "HANDRAIL_FILESYSTEM": "y"}
    assert load(path, **others) == Config()


def test_a_mistake_in_the_file_is_found_although_a_variable_overrides_it(path):
    path.write_text("calls:\n  batch_timeout: soon\n")
    with pytest.raises(ConfigError, match=r"calls\.batch_timeout"):
        load(path, HANDRAIL_CALLS_BATCH_TIMEOUT="30")


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("calls.max_threads", "12", 12),
        ("plugins.p.allow_override", "true", True),
        ("tools.on_collision", "replace", "replace"),
        ("toolsets.mine.description", "123: not a number", "123: not a number"),
        ("command_allowlist", "rm: a, b", ["rm: a, b"]),
        ("files.roots", "[/a, /b]", ["/a", "/b"]),
        ("tools.enabled_toolsets", "null", None),
        ("toolsets.mine", "{tools: [a]}", {"tools": ["a"]}),
    ],
)
def test_text_from_a_command_line_becomes_what_the_setting_wants(key, text, value):
    assert parse_value(key, text) == value


def test_the_terminals_backend_has_a_short_name(path):
    assert load(path, HANDRAIL_TERMINAL="docker:python:3.12").terminal.backend == "docker:python:3.12"
    assert load(path, HANDRAIL_TERMINAL_TIMEOUT="5").terminal.timeout == 5
    assert load(path, HANDRAIL_TERMINAL_ENV="{A: b}").terminal.env == {"A": "b"}


@pytest.mark.parametrize(
    ("text", "value"),
    [("2g", "2g"), ("4", 4), ("true", True), ("[a, b]", ["a", "b"]), ("{a: 1}", {"a": 1}), ("", None)],
)
def test_a_setting_of_a_backend_is_what_yaml_takes_it_for(text, value):
    assert parse_value("terminal.backends.docker.memory", text) == value


def test_the_settings_of_a_backend_are_the_backends_to_check(path):
    path.write_text(
        "terminal:\n  backends:\n    docker: {image: x, mounts: [/a, /b], limits: {pids: 100}}\n    mine:\n"
    )
    backends = load(path).terminal.backends
    assert backends == {"docker": {"image": "x", "mounts": ["/a", "/b"], "limits": {"pids": 100}}, "mine": {}}
    path.write_text("terminal:\n  backends:\n    docker: image\n")
    with pytest.raises(ConfigError, match="must be a mapping"):
        load(path)


@pytest.mark.parametrize("variable", ["HANDRAIL_MODEL", "HANDRAIL_TERMINAL"])
def test_an_empty_variable_that_stands_for_its_section_changes_nothing(path, variable):
    path.write_text("model: {name: mine}\nterminal: {backend: ssh}\n")
    config = load(path, **{variable: ""})
    assert (config.model.name, config.terminal.backend) == ("mine", "ssh")


@pytest.mark.parametrize(
    ("text", "setting", "value"),
    [
        ("terminal: {protect: off}", "terminal.protect", False),
        ("terminal: {protect: on}", "terminal.protect", True),
        ("protect: {package: Off}", "protect.package", False),
        ("effects: off", "effects.enabled", False),
        ("effects: false", "effects.enabled", False),
        ("effects: on", "effects.enabled", True),
        ("effects: {enabled: OFF}", "effects.enabled", False),
        ("plugins: {mine: off}", "plugins.mine.enabled", False),
    ],
)
def test_a_switch_is_on_or_off(path, text, setting, value):
    path.write_text(text + "\n")
    assert ConfigFile(path).get(setting) is value


@pytest.mark.parametrize("text", ["effects: maybe", "terminal: off", "terminal: {protect: no}", "files: off"])
def test_what_is_no_switch_is_neither_on_nor_off(path, text):
    path.write_text(text + "\n")
    with pytest.raises(ConfigError):
        load(path)


@pytest.mark.parametrize("variable", ["HANDRAIL_EFFECTS", "HANDRAIL_EFFECTS_ENABLED"])
def test_a_variable_switches_a_section_off(path, variable):
    path.write_text("")
    assert not load(path, **{variable: "off"}).effects.enabled


def test_a_section_that_is_off_as_a_whole_can_be_changed(path):
    path.write_text("effects: off  # a slow disk\n")
    ConfigFile(path).set("effects.keep_days", 3.0)
    assert path.read_text() == "effects: {enabled: false, keep_days: 3.0}  # a slow disk\n"
    assert load(path).effects.keep_days == 3
