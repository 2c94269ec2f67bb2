"""Which of the runtime's variables commands see."""

from __future__ import annotations

from pathlib import Path

import pytest

from handrail.environments.command_input import clean_environment
from handrail.environments.errors import EnvironmentStartError
from handrail.environments.local_environment import LocalEnvironment

from .conftest import PATIENCE_SECONDS, text

_SECRET = {
    "OPENAI_API_KEY": "x1",
    "ANTHROPIC_APIKEY": "x2",
    "GITHUB_TOKEN": "x3",
    "SLACK_WEBHOOK_URL": "https://hooks.example.org/x",
    "AWS_SECRET_ACCESS_KEY": "x4",
    "AWS_ACCESS_KEY_ID": "x5",
    "DB_PASSWORD": "x6",
    "MYSQL_PWD": "x",
    "PGPASSWORD": "x7",
    "MY_SECRET": "x8",
    "SOME_CREDENTIALS": "x9",
    "SIGNING_KEY": "x10",
    "SSH_PASSPHRASE": "x11",
    "NPM_CONFIG__AUTH": "x12",
    "DATABASE_URL": "postgres://user:password@host/db",
    "HARMLESS_NAME": "ghp_0123456789abcdefghij0123456789abcdef",
}
_NEEDED = {
    "PATH": "/usr/bin:/bin",
    "TOKENIZERS_PARALLELISM": "false",
    "KEYBOARD": "de",
    "MONKEY": "x",
    "GOOGLE_APPLICATION_CREDENTIALS_FILE": "/x",
    "SSH_AUTH_SOCK": "/x",
    "HTTPS_PROXY": "http://user:password@proxy:3128",
    "AUTHOR": "me",
    "LANG": "C.UTF-8",
}


@pytest.fixture
def _variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**_SECRET, **_NEEDED}.items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("_variables")
def test_secrets_are_left_out_by_name_and_by_value() -> None:
    clean = clean_environment()
    assert {name for name in _SECRET if name in clean} == set()
    assert {name: clean.get(name) for name in _NEEDED} == _NEEDED


@pytest.mark.usefixtures("_variables")
def test_a_secret_that_is_allowed_by_name_passes() -> None:
    clean = clean_environment(["GITHUB_TOKEN"])
    assert clean["GITHUB_TOKEN"] == "x3"
    assert "OPENAI_API_KEY" not in clean


@pytest.mark.usefixtures("_variables")
def test_no_command_sees_the_runtimes_secrets(work: Path) -> None:
    with LocalEnvironment(str(work), env={"GIVEN": "1", "LANG": None}) as local:
        seen = text(
            local.execute("env; cat /proc/$$/environ /proc/$PPID/environ | tr '\\0' '\\n'", timeout=PATIENCE_SECONDS)
        )
    names = {line.split("=")[0] for line in seen.splitlines()}
    assert not names & set(_SECRET)
    assert "GIVEN" in names
    assert "LANG" not in names


@pytest.mark.usefixtures("_variables")
def test_an_allowed_secret_reaches_commands(work: Path) -> None:
    with LocalEnvironment(str(work), allowed_secrets=["OPENAI_API_KEY"]) as local:
        assert text(local.execute("echo $OPENAI_API_KEY$GITHUB_TOKEN", timeout=PATIENCE_SECONDS)) == "x1\n"


def test_a_login_environment_has_what_the_users_files_set(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / ".bash_profile").write_text("echo welcome; export FROM_PROFILE='a b'\n")
    monkeypatch.setenv("HOME", str(home))
    with LocalEnvironment(str(work), login=True) as local:
        assert text(local.execute("echo $FROM_PROFILE; echo $SHLVL", timeout=PATIENCE_SECONDS)) == "a b\n1\n"


def test_a_large_environment_passes(work: Path) -> None:
    many = {f"VARIABLE_{number}": "x" * 1000 for number in range(500)}
    with LocalEnvironment(str(work), env=many) as local:
        assert text(local.execute("env | grep -c ^VARIABLE_; exit", timeout=PATIENCE_SECONDS)) == "500\n"
        assert text(local.execute("env | grep -c ^VARIABLE_", timeout=PATIENCE_SECONDS)) == "500\n"


def test_a_working_directory_that_is_missing_is_an_error(work: Path) -> None:
    with pytest.raises(EnvironmentStartError, match="does not exist; create it"):
        LocalEnvironment(str(work / "missing")).start()
