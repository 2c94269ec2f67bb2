"""Put the commands together, run one, and end with the right exit code."""

from __future__ import annotations

import os
import pkgutil
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, NoReturn, TextIO

import typer

from .. import __version__
from ..errors import HandrailError
from . import commands, exit_codes
from .open_runtime import close_runtime
from .output import end_quietly, say

# Set by the scripts that `handrail completion` prints, when the shell asks what could come next.
COMPLETION_VARIABLE = "_HANDRAIL_COMPLETE"


def run(args: list[str]) -> NoReturn:
    """Run one command and leave the process."""
    _make_streams_usable()
    try:
        build(args)(args, prog_name="handrail")
    except HandrailError as error:
        say(str(error))
        sys.exit(exit_codes.of_error(error))
    finally:
        close_runtime()
        end_quietly()
    sys.exit(exit_codes.ExitCode.OK)


def build(args: Sequence[str] = ()) -> typer.Typer:
    """The whole command line. Every module in `commands/` adds its own part; plugins add theirs when `args` may mean one."""
    app = typer.Typer(
        # `--install-completion` would write into the user's start-up files; `handrail completion` prints instead.
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root)
    known = {"--version", COMPLETION_VARIABLE}
    for module in pkgutil.iter_modules(commands.__path__):
        import_module(f"{commands.__name__}.{module.name}").add_to(app)
        known.add(module.name)
    if args and args[0] not in known:
        _add_commands_of_plugins(app)
    if COMPLETION_VARIABLE in os.environ:
        from typer.completion import get_completion_inspect_parameters

        get_completion_inspect_parameters()  # makes Typer's own shells known, which `add_completion` would do
    return app


def _add_commands_of_plugins(app: typer.Typer) -> None:
    from ..plugins.sources import find_plugins

    if not any(find_plugins()):
        return
    from .open_runtime import open_runtime

    try:
        plugins = open_runtime().plugins
    except HandrailError as error:
        say(str(error))
        return
    for name, add_to in plugins.contributions.commands.items() if plugins else ():
        try:
            add_to(app)
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
      handrail demo                             watch a scripted model use the tools
      handrail chat                             talk with an agent that works in this folder
      handrail tools                            what there is, and what can be used now
      handrail call read_file path=README.md    one call, as a model would make it
      handrail doctor                           what is wrong, and how to fix it

    The result goes to stdout, everything else to stderr. Exit codes: 0 ok, 1 failed, 2 wrong usage or arguments, 3
    denied, 124 time is over, 130 interrupted.
    """


def _make_streams_usable() -> None:
    """Results are UTF-8 wherever they go, and no character can make printing fail. A closed stream becomes an empty one."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        stream: TextIO | None = getattr(sys, name)
        if stream is None:
            os.dup2(os.open(os.devnull, os.O_RDWR), number)
            stream = open(number, "w" if number else "r", encoding="utf-8", closefd=False)  # noqa: SIM115  open as long as the process
            setattr(sys, name, stream)
        if number and hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding=None if stream.isatty() else "utf-8", errors="replace")
