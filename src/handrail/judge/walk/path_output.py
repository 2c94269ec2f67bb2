"""What programs print that only work on paths: pwd, dirname, basename, realpath, mktemp, `git rev-parse --show-toplevel`."""

from __future__ import annotations

import posixpath

from ..values.word_values import UNKNOWN, Arg, Value, taints_of
from .script_files import here
from .sources import absolute
from .walk import Call, Walk

_PROGRAMS = frozenset("pwd dirname basename realpath readlink mktemp git".split())


def output(walk: Walk, call: Call) -> Value | None:
    """None when it is another program, or not known."""
    if call.name not in _PROGRAMS:
        return None
    operands = [arg for arg in call.args if arg[:1] != "-"]
    text = _printed(walk, call, operands)
    return None if text is None else Value(f"{text}\n", taints_of(operands))


def _printed(walk: Walk, call: Call, operands: list[Arg]) -> str | None:
    if call.name == "pwd":
        return walk.cwd
    if call.name == "mktemp":
        plain = not operands and all(arg in ("-d", "-q", "-t", "--directory") for arg in call.args)
        return f"/tmp/tmp.{UNKNOWN}" if plain and walk.lookup("TMPDIR") is None else None
    if call.name == "git":
        is_top = list(call.args) == ["rev-parse", "--show-toplevel"] and walk.sources is not None
        return walk.sources.root(here(walk), walk.judgement.project) if is_top and walk.sources is not None else None
    if not operands:
        return None
    first = str(operands[0])
    if call.name == "dirname":
        return (posixpath.dirname(first.rstrip("/")) or ".") if len(operands) == 1 and first else None
    if call.name == "basename":
        name = posixpath.basename(first.rstrip("/"))
        return name.removesuffix(operands[1]) if len(operands) > 1 else name
    if call.name == "readlink" and not any(arg in ("-f", "-e", "-m", "--canonicalize") for arg in call.args):
        return None
    return _resolved(walk, first)


def _resolved(walk: Walk, path: str) -> str | None:
    """Where a path leads, links followed: only with a disk to look at."""
    place = absolute(path, here(walk))
    if walk.sources is None or not place or UNKNOWN in place:
        return None
    found = walk.sources.entry(place)
    return found.path if found is not None else place
