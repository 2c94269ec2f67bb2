"""Put the commands together, run one, and end with the right exit code.

In a shell that an agent started, a command that is in neither table of `agent_access.json`, such as one of a plugin, is refused.
"""

import ast
import io
import json
import os
import re
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, NoReturn, TextIO

import typer
from typer.completion import get_completion_inspect_parameters
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from .. import __version__
from ..base.own_process import refuse_agents
from ..config.paths import find_plugins, state_dir
from ..errors import HandrailError
from .output import ExitCode, end_quietly, exit_code_of_error, say

_COMMANDS = Path(__file__).parent / "commands"
# In a help text, examples keep their lines, as what follows a `\b` does.
_EXAMPLES = re.compile(r"(?<!\x08\n)^(Examples?:)$", re.MULTILINE)

# How `handrail --help` groups the commands; one that is not here is listed at the end.
GROUPS: dict[str, str] = json.loads(Path(__file__).with_name("command_groups.json").read_text("utf-8"))

# Set by the scripts that `handrail completion` prints, when the shell asks what could come next.
COMPLETION_VARIABLE = "_HANDRAIL_COMPLETE"


def run(args: list[str]) -> NoReturn:
    """Run one command and leave the process."""
    _make_streams_usable()
    try:
        build(args)(args, prog_name="handrail")
    except HandrailError as error:
        say(str(error))
        sys.exit(exit_code_of_error(error))
    except OSError:
        end_quietly()  # ends here if it is the output that cannot be written
        raise
    finally:
        close_runtime()
        end_quietly()
    sys.exit(ExitCode.OK)


def close_runtime() -> None:
    """End what the command's calls have started, if there were any."""
    if (model_tools := sys.modules.get("handrail.model_tools")) is not None:
        model_tools.reset()


def build(args: Sequence[str] = ()) -> typer.Typer:
    """The whole command line. Plugins add their commands when `args` may mean one of them."""
    cli = typer.Typer(
        cls=CommandGroup,
        # `--install-completion` would write into the user's start-up files; `handrail completion` prints instead.
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    cli.callback()(_root)
    if args and args[0] not in (*command_names(), "--version"):
        _add_commands_of_plugins(cli)
    if COMPLETION_VARIABLE in os.environ:
        get_completion_inspect_parameters()  # makes Typer's own shells known, which `add_completion` would do
    return cli


def command_names() -> list[str]:
    """The commands that are part of Handrail, by their files."""
    return sorted(path.stem for path in _COMMANDS.glob("[!_]*.py"))


class CommandGroup(TyperGroup):
    """Imports a command's module when that command is called, and none to list the commands."""

    def __init__(self, *, commands: dict[str, Any], **settings: Any) -> None:
        super().__init__(commands={**{name: TyperCommand(name) for name in command_names()}, **commands}, **settings)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in command_names():
            found = super().get_command(ctx, cmd_name)
            return None if found is None else guarded(found, cmd_name)
        # Else a Ctrl-C shows the stack of a module that is not in Python.
        before = signal.signal(signal.SIGINT, signal.SIG_DFL)
        module = import_module(f".commands.{cmd_name}", __package__)
        signal.signal(signal.SIGINT, before)
        command = command_in(module, cmd_name)
        command.name, command.help = cmd_name, module.__doc__
        return guarded(command, cmd_name)

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        for name in command_names():
            if name.startswith(incomplete):
                self.commands[name].short_help = _first_sentence(_docstring(name))
        vars(self)["get_command"] = lambda _, name: self.commands[name]  # nothing is imported for its name
        return super().shell_complete(ctx, incomplete)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002  the base class calls it with both
        if len(sys.argv) == 1 and sys.stderr.isatty():  # what to do first stays on the screen
            formatter.write("\n`handrail --help` lists all commands.\n")
            return
        helps = {name: command.help or "" for name, command in self.commands.items()}
        helps |= {name: _docstring(name) for name in command_names()}
        width = max(map(len, helps))
        grouped = {name for names in GROUPS.values() for name in names.split()}
        for title, names in {**GROUPS, "More": " ".join(name for name in helps if name not in grouped)}.items():
            if names:
                with formatter.section(title):
                    listed = [name for name in names.split() if name in helps]
                    formatter.write_dl([(name.ljust(width), _first_sentence(helps[name])) for name in listed])


def command_in(module: ModuleType, name: str) -> Any:
    """The group of commands that a file has as `cli`, or else its function of the file's name."""
    if (cli := getattr(module, "cli", None)) is None:
        cli = typer.Typer(add_completion=False, rich_markup_mode=None)
        cli.command()(getattr(module, name))
    return get_command(cli)


def _first_sentence(text: str) -> str:
    return " ".join(text.partition("\n\n")[0].split()).partition(". ")[0].removesuffix(".") + "."


def _docstring(command: str) -> str:
    return ast.get_docstring(ast.parse((_COMMANDS / f"{command}.py").read_text("utf-8"))) or ""


def _add_commands_of_plugins(cli: typer.Typer) -> None:
    if not any(find_plugins()):
        return
    from .runtime import open_runtime

    try:
        plugins = open_runtime().plugins
    except HandrailError as error:
        say(str(error))
        return
    for name, add_to in plugins.contributions.commands.items() if plugins else ():
        try:
            add_to(cli)
        except Exception as error:  # noqa: BLE001  a plugin may fail in any way, and the other commands must work
            say(f"the command {name} of a plugin cannot be added: {type(error).__name__}: {error}")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"handrail {__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Tools for LLM agents: list them, call them, see what a model would see.

    \b
    Start here:
      handrail demo     watch a scripted model use tools
      handrail setup    choose a model, and try it
      handrail chat     talk with an agent in this folder
      handrail tools    what there is, and what can be used
      handrail call     one call, as a model would make it
      handrail doctor   what is wrong, and how to fix it

    The result goes to stdout, everything else to stderr. Exit codes: 0 ok, 1 failed, 2 wrong usage or arguments, 3
    denied, 124 timed out, 130 interrupted.
    """


def _make_streams_usable() -> None:
    """Results are UTF-8 wherever they go, and no character can make printing fail. A closed stream becomes an empty
    one; writing a result to a closed stdout fails."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        stream: TextIO | None = getattr(sys, name)
        if stream is None:
            # A result that goes nowhere is an error: what reads only cannot be written.
            os.dup2(os.open(os.devnull, os.O_RDONLY if name == "stdout" else os.O_RDWR), number)
        if stream is None or (name == "stdout" and isinstance(getattr(stream, "buffer", None), io.RawIOBase)):
            # Also for PYTHONUNBUFFERED: only a buffer still has at the end what could not be written.
            stream = open(number, "w" if number else "r", encoding="utf-8", closefd=False)  # noqa: SIM115  open as long as the process
            setattr(sys, name, stream)
        if number and hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding=None if stream.isatty() else "utf-8", errors="replace")


# What an agent's shell may do: commands that show something, or run tools and agents, whose gate is the strictest there and
# whose stores are copies in memory. The others are refused, each with what an agent must not do.
_ACCESS = json.loads(Path(__file__).with_name("agent_access.json").read_text("utf-8"))
READERS: frozenset[str] = frozenset(_ACCESS["allowed"])
STATE_READERS: frozenset[str] = frozenset(_ACCESS["reads_state"])
WRITERS: dict[str, str] = _ACCESS["refused"]


def guarded(command: Any, name: str) -> Any:
    """The command, with all that are below it, refused by name where an agent may not use it. `--help` works everywhere."""
    command.help = command.help and _EXAMPLES.sub("\b\n\\1", command.help)
    for inner, each in command.commands.items() if isinstance(command, TyperGroup) else ():
        each.short_help = each.short_help or _first_sentence(each.help or "")  # Typer would cut it
        guarded(each, f"{name} {inner}")
    if command.callback is None or name in READERS - STATE_READERS:
        return command
    invoke, callback, contexts = command.invoke, command.callback, []

    def noted(context: Any) -> Any:
        contexts.append(context)
        return invoke(context)

    def checked(*args: Any, **given: Any) -> Any:
        if contexts[-1].invoked_subcommand is None:  # a group's function runs before what is below it, too
            if name not in STATE_READERS:
                refuse_agents(WRITERS.get(name, f"use `handrail {name}`"))
            elif _state_is_hidden():  # an empty list would be a wrong answer
                refuse_agents(f"use `handrail {name}` here, because Handrail's state is hidden from what agents run")
        return callback(*args, **given)

    command.invoke, command.callback = noted, checked
    return command


def _state_is_hidden() -> bool:
    """Whether the state folder is covered by an empty, read-only one, as it is for what agents run in a mount namespace."""
    folder = state_dir()
    try:
        return bool(os.statvfs(folder).f_flag & os.ST_RDONLY) and not any(folder.iterdir())
    except OSError:
        return False
