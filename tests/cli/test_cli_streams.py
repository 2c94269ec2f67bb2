"""What every command has in common: where it writes, how it ends, what it costs to start."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.core import TyperGroup
from typer.main import get_command

import handrail
from handrail.cli import commands, runtime
from handrail.cli.app import build, command_names
from handrail.store.sessions import SessionStore

from .. import fork_server
from ..support import PYTHON
from ..tmux import Tmux, need_tmux
from .conftest import Cli, run_here

COMMANDS = [
    *((name,) for name in command_names()),
    *(("config", name) for name in ("get", "set", "unset", "path", "edit", "show")),
]


def test_the_version_is_told_without_loading_anything(cli: Cli) -> None:
    assert cli("--version").out == f"handrail {handrail.__version__}\n"
    code = (
        "import sys; sys.argv = ['handrail', '--version']; from handrail.cli import main; main(); print(*sys.modules)"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], env=cli.env, capture_output=True, text=True, check=True
    ).stdout
    assert not {"typer", "handrail.tools", "handrail.config", "asyncio"}.intersection(loaded.split())


def test_help_loads_nothing_heavy(cli: Cli) -> None:
    code = (
        "import sys; sys.argv = ['handrail', '--help']; from handrail.cli import main\n"
        "try: main()\nexcept SystemExit: print('loaded', *sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], env=cli.env, capture_output=True, text=True, check=True)
    loaded = ran.stdout.rsplit("loaded", 1)[1].split()
    heavy = {
        "rich",
        "pydantic",
        "jsonschema_rs",
        "ruamel",
        "asyncio",
        "handrail.config.validation",
        "handrail.tools",
    }
    assert not heavy.intersection(loaded)


@pytest.mark.parametrize("args", [("call", "todo", "todos:=[]"), ("check", "ls")], ids=" ".join)
def test_only_the_module_of_the_called_command_is_imported(cli: Cli, args: tuple[str, ...]) -> None:
    code = (
        f"import sys; sys.argv = ['handrail', *{args!r}]; from handrail.cli import main\n"
        "try: main()\nexcept SystemExit: print('loaded', *sys.modules)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], env=cli.env, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL
    )
    loaded = {name for name in (ran.stdout + ran.stderr).split() if name.startswith("handrail.cli.commands.")}
    assert loaded == {f"handrail.cli.commands.{args[0]}"}


def test_every_file_of_the_folder_is_a_command_with_help() -> None:
    files = {path.stem for path in Path(commands.__path__[0]).glob("*.py")} - {"__init__"}
    assert set(command_names()) == files
    help_text = run_here("--help").out
    for name in files:
        module = import_module(f"handrail.cli.commands.{name}")
        assert isinstance(getattr(module, "cli", None), typer.Typer) or callable(getattr(module, name))
        assert help_text.count(f"\n  {name} ") == 1


CORE_ALONE = """
import re, sys
from importlib import import_module, metadata

def plain(name):
    return re.sub(r"[-_.]+", "-", name).lower()

def needed(name, found):
    if name not in found:
        found.add(name)
        for line in metadata.requires(name) or ():
            if "extra ==" not in line:
                try:
                    needed(plain(re.match(r"[\\w.-]+", line)[0]), found)
                except metadata.PackageNotFoundError:
                    pass  # for another system
    return found

core = needed("handrail", set())
others = {
    top
    for top, names in metadata.packages_distributions().items()
    if not set(map(plain, names)) & core
}

class CoreAlone:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in others:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, CoreAlone())
for name in sys.argv[1:]:
    import_module(f"handrail.cli.commands.{name}")
assert "playwright" not in sys.modules
"""


def test_every_command_can_be_loaded_with_the_core_alone() -> None:
    """Without the extras that it can do without: it says itself what it lacks for something."""
    ran = subprocess.run([PYTHON, "-c", CORE_ALONE, *command_names()], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-2000:]


def test_no_arguments_show_the_help(cli: Cli) -> None:
    ran = cli()
    assert ran.code == 2
    assert "--install-completion" not in ran.out + ran.err
    for name, *_ in COMMANDS:
        assert f"\n  {name} " in ran.out + ran.err


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_the_help_of_every_command_teaches_by_example(command: tuple[str, ...]) -> None:
    ran = run_here(*command, "--help")
    assert ran.code == 0
    assert f"handrail {' '.join(command)}" in ran.out.split("Example", 1)[1]
    assert max(map(len, ran.out.splitlines())) <= 100


def test_an_unknown_command_is_a_usage_error_with_a_suggestion(cli: Cli) -> None:
    ran = cli("tolls")
    assert (ran.code, ran.out) == (2, "")
    assert "tools" in ran.err


@pytest.mark.parametrize("command", [("tools",), ("schema",), ("call", "todo", "-"), ("demo",), ("doctor",)])
def test_a_reader_that_goes_away_causes_no_complaint(cli: Cli, command: tuple[str, ...]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with cli.start(*command, stdout=writer) as process:
        os.close(writer)
        _, err = process.communicate(b"", timeout=60)
    assert err == b""
    assert process.returncode == 141
    assert list(cli.temp.iterdir()) == []


def test_ctrl_c_while_a_command_is_imported_ends_it_without_a_word(cli: Cli) -> None:
    code = """
import os, signal, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "jsonschema_rs":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
sys.argv = ["handrail", "config", "show"]
from handrail.cli import main
main()
"""
    ran = subprocess.run([PYTHON, "-c", code], cwd=cli.cwd, env=cli.env, capture_output=True, check=False)
    assert (ran.returncode, ran.stderr) == (-signal.SIGINT, b"")


def test_closed_streams_are_borne(cli: Cli) -> None:
    for closed, code in (("<&- 2>&- >/dev/null", 0), ("<&- >&- 2>&-", 1)):  # a result that goes nowhere is lost
        command = f"{PYTHON} -m handrail tools {closed}"
        assert subprocess.run(command, shell=True, cwd=cli.cwd, env=cli.env, check=False).returncode == code


def test_results_are_utf_8_whatever_the_locale_says(cli: Cli) -> None:
    cli.file("a.txt", "grün 🌿\n")
    ran = cli(
        "call",
        "read_file",
        "path=a.txt",
        LC_ALL="POSIX",
        PYTHONCOERCECLOCALE="0",
        PYTHONUTF8="0",
        PYTHONIOENCODING="ascii",
    )
    assert (ran.code, ran.json["content"]) == (0, "grün 🌿\n")


def _helps(command: Any, name: str, above: Any = None) -> Iterator[tuple[str, str]]:
    context = command.context_class(command, info_name=name, parent=above)
    yield context.command_path, command.get_help(context)
    for each in command.list_commands(context) if isinstance(command, TyperGroup) else ():
        yield from _helps(command.get_command(context, each), each, context)


@pytest.mark.parametrize("columns", [80, 60])
def test_every_help_fits_a_narrow_terminal_and_no_line_is_cut(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    """Only a command to copy may be longer than 60 columns: broken in two it would not work."""
    monkeypatch.setenv("COLUMNS", str(columns))
    for command, text in _helps(get_command(build()), "handrail"):
        _, _, examples = text.partition("Examples:\n")
        for line in text.splitlines():
            assert not line.endswith("...") or line.endswith("[ARGS]..."), (command, line)
            assert len(line) <= columns or (columns < 80 and line in examples and len(line) <= 80), (command, line)


@pytest.mark.parametrize(
    ("shell", "mark"), [("bash", "complete -o"), ("zsh", "#compdef"), ("fish", "complete --command")]
)
def test_a_completion_script_is_only_printed(cli: Cli, shell: str, mark: str) -> None:
    ran = cli("completion", shell)
    assert ran.code == 0
    assert mark in ran.out
    assert "handrail" in ran.out


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("handrail to", "toolsets"),
        ("handrail call rea", "read_file"),
        ("handrail tools --toolset fi", "file"),
        ("handrail call read_file path=x off", "offset="),
        ("handrail config set files.r", "files.roots"),
        ("handrail config get model.na", "model.name"),
    ],
)
def test_the_shell_completes_commands_tools_their_arguments_and_settings(cli: Cli, words: str, expected: str) -> None:
    ran = cli(_HANDRAIL_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=str(words.count(" ")))
    assert expected in ran.out.split()


@pytest.mark.parametrize("words", ["handrail sessions show 2", "handrail trace 2", "handrail chat --resume 2"])
def test_the_shell_completes_the_ids_of_sessions(cli: Cli, words: str) -> None:
    with contextlib.closing(SessionStore(cli.home / "state" / "sessions.db")) as store:
        info = store.create(platform="cli", model="m", cwd=str(cli.cwd))
    ran = cli(_HANDRAIL_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=str(words.count(" ")))
    assert ran.out.split() == [info.id]


def test_what_was_given_already_is_not_offered_again(cli: Cli) -> None:
    words = "handrail call read_file path=x "
    ran = cli(_HANDRAIL_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=str(words.count(" ")))
    assert "offset=" in ran.out.split()
    assert "path=" not in ran.out.split()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_tab_completes_commands_and_arguments(cli: Cli, tmp_path: Path, shell: str) -> None:
    """And begins the next word after a command, not after `path=`."""
    need_tmux()
    if shutil.which(shell) is None:
        pytest.fail(f"{shell} is not installed; scripts/services/install.sh installs it")
    (tmp_path / "a.txt").write_text("found it\n")
    programs = tmp_path / "bin"
    programs.mkdir()
    fork_server.program(programs / "handrail", "-m", "handrail")
    # Without this folder fish reads all manual pages first.
    (tmp_path / ".local/share/fish/generated_completions").mkdir(parents=True)
    tmux = Tmux(tmp_path / ".tmux", cwd=tmp_path, env={**cli.env, "HOME": str(tmp_path)})
    load = {
        "bash": 'eval "$(handrail completion bash)"',
        "zsh": 'autoload -U compinit; compinit -u; eval "$(handrail completion zsh)"',
        "fish": "handrail completion fish | source",
    }[shell]
    try:
        start = {"bash": "bash --norc", "zsh": "zsh -f", "fish": "fish"}[shell]
        tmux.type(f"PATH={programs}:$PATH PS1='$ ' {start}", "Enter")
        tmux.type(f"{load}; echo load''ed", "Enter")
        tmux.wait_for("\nloaded")
        for typed, completed in (("handrail doct", "handrail doctor"), ("--he", "doctor --help")):
            tmux.type("--", typed, "Tab")
            tmux.wait_for(completed)
        tmux.type("Enter")
        tmux.wait_for("Usage: handrail doctor")
        for typed, completed in (("handrail call read_f", "call read_file"), ("pa", "read_file path=")):
            tmux.type("--", typed, "Tab")
            tmux.wait_for(completed)
        tmux.type("a.txt --raw", "Enter")
        tmux.wait_for("\nfound it")
    finally:
        tmux.end()


def test_what_blocks_everything_is_left_behind_after_a_while(
    held: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtime, "GRACE_SECONDS", 0.01)
    assert runtime.supervise(lambda cancel: held.wait(), timeout=0.01) == (
        None,
        runtime.Ending.TIMED_OUT,
    )


@pytest.mark.parametrize(
    "command", ["config show", "tools", "call read_file path=/etc/hostname", "--version", "--help", "completion bash"]
)
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(("target", "why"), [("> /dev/full", "No space left on device"), (">&-", "stdout is closed")])
def test_a_result_that_cannot_be_written_is_one_line_and_a_failure(
    tmp_path: Path, command: str, unbuffered: str, target: str, why: str
) -> None:
    env = {"HANDRAIL_HOME": str(tmp_path), "PATH": os.environ["PATH"], "PYTHONUNBUFFERED": unbuffered}
    ran = subprocess.run(
        f"{PYTHON} -m handrail {command} {target}", shell=True, env=env, cwd=tmp_path, capture_output=True, text=True
    )
    assert ran.returncode == 1, ran.stderr
    assert why in ran.stderr
    assert len(ran.stderr.strip().splitlines()) == 1


def test_an_agent_for_editors_without_pipes_says_so_instead_of_waiting(tmp_path: Path) -> None:
    env = {"HANDRAIL_HOME": str(tmp_path), "PATH": os.environ["PATH"], "HANDRAIL_MODEL": "x", "OPENAI_API_KEY": "x"}
    ran = subprocess.run(
        f"{PYTHON} -m handrail acp < /dev/null",
        shell=True, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert ran.returncode == 2
    assert "an editor starts this" in ran.stderr
    assert "Traceback" not in ran.stderr
