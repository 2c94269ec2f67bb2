"""In a shell that an agent started, the command line shows what there is and changes nothing."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.core import TyperGroup
from typer.main import get_command

import handrail
from handrail import model_tools
from handrail.approval.gate import STORE_NAME as APPROVALS
from handrail.cli.app import READERS, WRITERS, command_in, command_names, guarded
from handrail.config.config_file import ConfigFile
from handrail.config.trust import Trust
from handrail.errors import Denied
from handrail.protocols import Answer, ApprovalRequest, Decision
from handrail.serve.gateway.store import STORE_NAME as PEOPLE
from handrail.serve.gateway.store import GatewayStore
from handrail.serve.tokens import STORE_NAME as TOKENS
from handrail.serve.tokens import Keys, Role
from handrail.store.approvals import ApprovalStore

from ..fuzz.needs import needs
from .conftest import run_here

# What each writer is called with; without words if it takes none.
_WORDS = {
    "approvals answer": ["0", "once"],
    "approvals revoke": ["1"],
    "batch resume": ["run1"],
    "batch run": ["tasks.jsonl", "--out", "run1"],
    "batch stop": ["run1"],
    "config set": ["approvals.mode", "off"],
    "config unset": ["approvals.deny"],
    "cron add": ["30m", "Do it."],
    "cron now": ["x"],
    "cron pause": ["x"],
    "cron remove": ["x"],
    "cron resume": ["x"],
    "mcp add": ["evil", "--", "true"],
    "mcp login": ["docs"],
    "mcp logout": ["docs"],
    "mcp remove": ["docs"],
    "mcp trust": ["docs"],
    "pair remove": ["matrix", "@ada:example.org"],
    "plugins disable": ["guard"],
    "plugins enable": ["guard"],
    "plugins new": ["evil"],
    "plugins trust": ["guard"],
    "ps kill": ["proc_00000000"],
    "rl run": ["x"],
    "serve login end": ["3f9a01bc"],
    "serve token new": ["me", "--role", "operate"],
    "redo": ["1"],
    "serve token revoke": ["phone"],
    "sessions branch": ["x"],
    "sessions delete": ["x"],
    "skills trust": ["helper"],
}
# Those that need a model, a terminal or a network are readers too, and tried elsewhere.
_LISTS = [
    *(
        "approvals list",
        "approvals log",
        "config show",
        "config path",
        "cron list",
        "mcp list",
        "pair list",
        "plugins list",
    ),
    *("ps", "serve token list", "sessions list", "skills list", "tools", "toolsets"),
]


def _tree(command: Any, path: str) -> Iterator[str]:
    if not isinstance(command, TyperGroup):
        yield path
        return
    if command.invoke_without_command:
        yield path
    for name, each in command.commands.items():
        yield from _tree(each, f"{path} {name}")


def every_command() -> list[str]:
    roots = [(command_in(import_module(f"handrail.cli.commands.{name}"), name), name) for name in command_names()]
    return sorted(path for command, name in roots for path in _tree(command, name))


@pytest.fixture
def used(home: Path) -> Path:
    """A home in which something can be changed."""
    (home / "config.yaml").write_text("approvals:\n  deny: [git push]\n")
    (home / "plugins").mkdir()
    (home / "plugins" / "guard.py").write_text('"""Guards."""\n')
    state = home / "state"
    keys = Keys(state / TOKENS)
    keys.new_token("phone", Role.WATCH)
    keys.close()
    people = GatewayStore(state / PEOPLE)
    people.pair("matrix", "@ada:example.org", people.new_code())
    people.close()
    asked = ApprovalStore(state / APPROVALS)
    asked.ask(ApprovalRequest(tool="terminal", arguments={}, reason="r", rule_key="k", expires_at=2e9), fingerprint="f")
    asked.grants.add("session:s", ["fs.rm.recursive@project:/srv"], by="cli")
    asked.close()
    return home


def _content(home: Path) -> dict[str, bytes]:
    """Everything but caches, which are no settings, and the files by which SQLite's connections know of each other."""
    return {
        str(path): path.read_bytes()
        for path in sorted(home.rglob("*"))
        if path.is_file() and path.parent.name != "cache" and not path.name.endswith("-shm")
        if not path.name.endswith("-wal") or path.stat().st_size
    }


def test_every_command_is_a_reader_or_a_writer() -> None:
    assert sorted([*READERS, *WRITERS]) == every_command()


@pytest.mark.parametrize("command", sorted(WRITERS))
def test_a_writer_changes_nothing_from_an_agents_shell(
    used: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    before = _content(used)
    monkeypatch.setenv("HANDRAIL_INSIDE", "1")
    with pytest.raises(Denied, match="an agent cannot"):
        run_here(*command.split(), *_WORDS.get(command, []))
    model_tools.reset()
    assert _content(used) == before


def test_a_group_lets_readers_below_a_writer_pass(used: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HANDRAIL_INSIDE", "1")
    assert "phone" in run_here("serve", "token", "list").out
    assert "@ada" in run_here("pair", "list").out


@pytest.mark.parametrize("command", ["calls", "approvals list", "sessions list", "ps", "cron list", "effects 1"])
def test_a_reader_does_not_call_hidden_state_empty(used: Path, command: str) -> None:
    words = f"{sys.executable} -I -c 'from handrail.cli import main; main()' {command}"
    with handrail.session(cwd=str(used.parent), approver=lambda _: "once") as session:
        result = session.call("terminal", {"command": words})
    assert result.data["exit_code"] == 3
    assert "state is hidden" in result.data["output"]


def test_a_command_that_nobody_declared_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    cli, ran = typer.Typer(), []
    cli.command("mend")(lambda: ran.append(1))
    command = guarded(get_command(cli), "mend")
    monkeypatch.setenv("HANDRAIL_INSIDE", "1")
    with pytest.raises(Denied, match="an agent cannot use `handrail mend`"):
        command([], standalone_mode=False)
    assert ran == []


def test_what_writes_refuses_by_itself_whoever_calls_it(used: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = used / "state"
    before = _content(used)
    monkeypatch.setenv("HANDRAIL_INSIDE", "1")
    keys, people, asked = Keys(state / TOKENS), GatewayStore(state / PEOPLE), ApprovalStore(state / APPROVALS)
    request = asked.pending()[0].request.id
    tries = [
        lambda: ConfigFile().set("approvals.mode", "off"),
        lambda: ConfigFile().unset("approvals.deny"),
        lambda: Trust().trust("plugin", "x", "y"),
        lambda: Trust().revoke("plugin", "x"),
        lambda: keys.new_token("me", Role.OPERATE),
        lambda: keys.revoke("phone"),
        lambda: people.new_code(),
        lambda: people.unpair("matrix", "@ada:example.org"),
        lambda: asked.answer(request, Answer(Decision.ONCE, "cli")),
    ]
    for each in tries:
        with pytest.raises(Denied):
            each()
    asked.answer(request, Answer(Decision.DENY, "cli"))  # a no is no danger, but it is not stored either
    assert asked.grants.revoke(1)
    assert asked.grants.all() == []
    for store in (keys, people, asked):
        store.close()
    assert _content(used) == before


@pytest.mark.parametrize("command", _LISTS)
def test_a_reader_works_and_changes_nothing(used: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    before = _content(used)
    monkeypatch.setenv("HANDRAIL_INSIDE", "1")
    assert run_here(*command.split()).code == 0
    model_tools.reset()
    assert _content(used) == before


_MOUNT = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && cd / && exec "$@"'


@pytest.mark.parametrize(
    ("command", "inside"), [("serve token list", ""), ("serve token list", "1"), ("approvals list", "1")]
)
def test_a_reader_works_where_the_state_is_mounted_read_only(
    used: Path, monkeypatch: pytest.MonkeyPatch, command: str, inside: str
) -> None:
    """There SQLite cannot make the files that it needs for a store in WAL mode."""
    needs("unshare", "install util-linux")
    assert not list((used / "state").glob("*-wal"))
    words = ["unshare", "-rm", "sh", "-c", _MOUNT, str(used), sys.executable, "-m", "handrail", *command.split()]
    if inside:
        monkeypatch.setenv("HANDRAIL_INSIDE", inside)
    ran = subprocess.run(words, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ("phone" in ran.stdout) == (command == "serve token list")
    assert ("session s" in ran.stdout) == (command == "approvals list")
