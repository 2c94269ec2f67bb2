"""Follow `docker compose up` to the compose file: what its services may do to this machine."""

from __future__ import annotations

from ..programs.wrapper_options import skip_options
from ..scripts import compose
from ..values.word_values import Arg, Value
from .script_files import lookup
from .script_programs import first_file
from .sources import Source
from .walk import Call, Walk

_STARTS = frozenset(("up", "run", "create", "start", "restart", "watch"))


def follow_compose(walk: Walk, call: Call) -> None:
    """Judge each service as the `docker run` that would start it."""
    args = call.args
    if not call.name.endswith("-compose"):
        start, _ = skip_options(args, "cHl", "config context host log-level")
        if args[start : start + 1] != ["compose"]:
            return
        args = args[start + 1 :]
    start, options = skip_options(
        args, "fp", "file project-name project-directory profile env-file ansi parallel progress"
    )
    if start >= len(args) or args[start] not in _STARTS:
        return
    named = [str(value) for option, value in options if option in ("-f", "--file") and value]
    piped = [Source("-", call.stdin.text, is_new=True)] if "-" in named and call.stdin is not None else []
    for source in (*piped, *_files(walk, named)):
        services = compose.options_of(source.text) if source.is_whole else None
        if services is None:
            if source.is_new:
                walk.report("limit.exceeded", [source.path])
            continue
        for given in services:
            if given:
                line = [Arg(word) for word in ("docker", "run", *given, "image")]
                walk.start(line, None)


def _files(walk: Walk, named: list[str]) -> list[Source]:
    stored = walk.lookup("COMPOSE_FILE")
    if not named and isinstance(stored, Value) and stored.known and stored.text:
        named = stored.text.split(":")
    if named:
        return [source for path in named if (source := lookup(walk, path)) is not None]
    found = (first_file(walk, compose.NAMES), first_file(walk, compose.OVERRIDES))
    return [source for source in found if source is not None]
