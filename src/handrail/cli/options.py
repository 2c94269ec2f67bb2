"""What command modules are made of: the `cli` of a group, and the options that several commands have."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import BadParameter as BadParameter
from typer import Context as Context
from typer import Exit as Exit

from ..app import Handrail
from ..errors import HandrailError, InvalidArguments
from ..settings.schema import json_schema
from ..types import JsonDict
from .output import refuse

_MAX_SECONDS = 366 * 24 * 3600


def new_cli(**settings: Any) -> typer.Typer:
    """The `cli` of a group of commands, to be filled by `@cli.command()`."""
    return typer.Typer(add_completion=False, rich_markup_mode=None, no_args_is_help=True, **settings)


def option(usage: str, text: str, **more: Any) -> Any:
    """An option. `usage` is as the help shows it, names and a word for the value: `--model -m NAME`; `text` is its help."""
    names = [word for word in usage.split() if word.startswith("-")]
    value = " ".join(word for word in usage.split() if not word.startswith("-"))
    return typer.Option(*names, metavar=value or None, help=text, **more)


def argument(usage: str, text: str, **more: Any) -> Any:
    """An argument, as the help shows it."""
    return typer.Argument(metavar=usage or None, help=text, **more)


def require_terminal(otherwise: str) -> None:
    """End the command, unless both its input and its output are a terminal. `otherwise` is for programs."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        refuse(f"this needs a terminal for input and output; a program uses `{otherwise}`")


def text_of(name: str) -> str:
    """The text of a file that was named, or of stdin for `-`. Raises InvalidArguments."""
    try:
        return sys.stdin.read() if name == "-" else Path(name).expanduser().read_text("utf-8")
    except OSError as error:
        raise InvalidArguments(f"cannot read {name}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidArguments(f"{'stdin' if name == '-' else name} is not UTF-8 text") from None


def _tool_names(incomplete: str) -> list[str]:
    return _starting_with(incomplete, lambda app: app.runtime.registry.get_all_tool_names())


def _toolset_names(incomplete: str) -> list[str]:
    return _starting_with(incomplete, lambda app: app.toolsets.names())


def argument_names(ctx: Context, incomplete: str) -> list[str]:
    """The arguments of the tool that was named before, as `name=`, without those that were given already."""
    given = [each.partition("=")[0].rstrip(":") for each in ctx.params.get("arguments") or ()]

    def names(app: Handrail) -> list[str]:
        entry = app.runtime.registry.get_entry(ctx.params.get("tool") or "")
        known = entry.schema.get("parameters", {}).get("properties", {}) if entry else {}
        return [f"{name}=" for name in known if name not in given]

    return _starting_with(incomplete, names)


def setting_names(incomplete: str) -> list[str]:
    """The keys of the configuration; those below a section once that is complete."""
    return [name for name in _settings(json_schema()) if name.startswith(incomplete)]


def _settings(schema: JsonDict, prefix: str = "") -> Iterator[str]:
    for name, below in schema.get("properties", {}).items():
        if below.get("properties"):
            yield from _settings(below, f"{prefix}{name}.")
        else:
            yield prefix + name


def session_ids(incomplete: str) -> list[tuple[str, str]]:
    """The sessions used last, with what they are about."""
    with contextlib.suppress(HandrailError):
        from ..agent.agent_factory import open_store  # most commands complete no session

        with contextlib.closing(open_store()) as store:
            return [(info.id, info.title) for info in store.recent(limit=50) if info.id.startswith(incomplete)]
    return []


def _starting_with(incomplete: str, names: Callable[[Handrail], list[str]]) -> list[str]:
    with contextlib.suppress(HandrailError):  # nothing to offer; the command itself will say what is wrong
        from ..model_tools import default

        return [name for name in names(default()) if name.startswith(incomplete)]
    return []


def _checked_timeout(seconds: float | None) -> float | None:
    if seconds is not None and not 0 < seconds <= _MAX_SECONDS:
        raise BadParameter(f"{seconds:g} is not a timeout; give more than 0 seconds, and less than a year")
    return seconds


DryRun = Annotated[bool, option("--dry-run", "Only show what would be done.")]
Json = Annotated[bool, option("--json", "Print JSON, for programs.")]
Tool = Annotated[str, argument("TOOL", "Name of a tool.", autocompletion=_tool_names)]
Texts = list[str] | None
Toolsets = Annotated[
    Texts, option("--toolset -t NAME", "Only the tools of this set; can be repeated.", autocompletion=_toolset_names)
]
Disabled = Annotated[
    Texts, option("--disable NAME", "Without the tools of this set; can be repeated.", autocompletion=_toolset_names)
]
Hosts = Annotated[Texts, option("--host NAME", "A name that the server is called by, such as agent.example.org.")]
TokenFd = Annotated[int | None, option("--token-fd N", "Read the token from this file descriptor.", min=0)]
ToolsetName = Annotated[str | None, argument("[NAME]", "A toolset.", autocompletion=_toolset_names)]
Task = Annotated[str | None, option("--task ID", "The task that the calls belong to.")]
Session = Annotated[str | None, option("--session ID", "The session that the calls belong to.")]
Timeout = Annotated[
    float | None,
    option("--timeout SECONDS", "Cancel what is not done by then; the exit code is 124.", callback=_checked_timeout),
]
Yolo = Annotated[
    bool, option("--yolo", "Do not ask about dangerous actions. Blocked ones, and your deny list, still apply.")
]
Mode = Annotated[
    str,
    option(
        "--mode MODE",
        "plan (change nothing), ask (before edits and commands), auto (before anything destructive), yolo. "
        "Default: auto; in a chat with the profile `open`: ask.",
    ),
]
Model = Annotated[str | None, option("--model -m NAME", "The model to use, instead of the configured one.")]
TrustFolder = Annotated[
    bool, option("--trust-folder", "Trust this folder from now on: its AGENTS.md instructs agents.")
]
Continue = Annotated[bool, option("--continue -c", "Continue the session last used in this folder.")]
Resume = Annotated[
    str | None,
    option("--resume -r ID", "Continue this session; the start of its id is enough.", autocompletion=session_ids),
]
