from __future__ import annotations

import os
from pathlib import Path

import platformdirs

from handrail.config.paths import cache_dir, config_path, state_dir


def test_paths_are_the_platforms_own_by_default(monkeypatch):
    monkeypatch.delenv("HANDRAIL_HOME", raising=False)
    assert config_path() == platformdirs.user_config_path("handrail", appauthor=False) / "config.yaml"
    assert state_dir() == platformdirs.user_state_path("handrail", appauthor=False)
    assert cache_dir() == platformdirs.user_cache_path("handrail", appauthor=False)


def test_one_variable_puts_everything_in_one_folder(tmp_path):
    environ = {"HANDRAIL_HOME": str(tmp_path / "home")}
    assert config_path(environ=environ) == tmp_path / "home" / "config.yaml"
    assert state_dir(environ=environ) == tmp_path / "home" / "state"
    assert cache_dir(environ=environ) == tmp_path / "home" / "cache"
    assert os.listdir(tmp_path) == [], "asking for a path must create nothing"


def test_the_process_environment_is_read_when_none_is_given(monkeypatch, tmp_path):
    monkeypatch.setenv("HANDRAIL_HOME", str(tmp_path))
    assert config_path() == tmp_path / "config.yaml"


def test_a_callers_environment_counts_for_platform_folders():
    environ = {"XDG_CONFIG_HOME": "/x/config", "XDG_STATE_HOME": "/x/state", "XDG_CACHE_HOME": "relative/is/ignored"}
    assert config_path(environ=environ) == Path("/x/config/handrail/config.yaml")
    assert state_dir(environ=environ) == Path("/x/state/handrail")
    assert cache_dir(environ=environ) == platformdirs.user_cache_path("handrail", appauthor=False)


def test_a_relative_or_tilde_home_becomes_absolute(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert config_path(environ={"HANDRAIL_HOME": "here"}) == tmp_path / "here" / "config.yaml"
    monkeypatch.setenv("HOME", str(tmp_path))
    assert state_dir(environ={"HANDRAIL_HOME": "~/there"}) == tmp_path / "there" / "state"


def test_an_empty_home_is_no_home():
    assert config_path(environ={"HANDRAIL_HOME": ""}) == config_path(environ={})
