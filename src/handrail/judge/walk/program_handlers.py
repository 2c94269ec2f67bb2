"""What is known about single programs, as the walk asks for it: it is given this module as its `Programs`."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Container
from importlib import import_module
from typing import Any

from ..programs.shell_escapes import opens_root_shell
from ..programs.tables import CONTAINERS, LANGUAGES, REMOTE, SHELLS, TEXT_OPTIONS, WRAPPERS
from ..values.data_files import read_tables
from ..values.word_values import EMPTY, Taint, Value, unknown
from . import (
    environment_variables,
    output_provenance,
    program_names,
    script_programs,
    text_emulation,
    unlisted_programs,
)
from .files_made import files_made, output_files
from .walk import Call, Known, Walk

_GROUPS = {
    "$shells": SHELLS,
    "$languages": LANGUAGES,
    "$wrappers": WRAPPERS,
    "$containers": CONTAINERS,
    "$remote": REMOTE,
    "$text-options": TEXT_OPTIONS,
}
TABLES = {
    section: {
        program: function
        for function, names in functions.items()
        for name in names.split()
        for program in _GROUPS.get(name, (name,))
    }
    for section, functions in read_tables(__file__).items()
}
"""By section of `program_handlers.txt` and program: the function that knows about it, as `module.function`."""
_COPY_INPUT = frozenset(("tee", "sponge"))
follow_unlisted = unlisted_programs.follow
follow_variable = environment_variables.follow_variable
possible_names = program_names.possible_names
source_file = script_programs.source_file
follow_files = script_programs.follow


@functools.cache
def _function(reference: str) -> Callable[..., Any]:
    """Its module is loaded with the first program that needs it: most commands are plain."""
    module, _, name = reference.partition(".")
    function: Callable[..., Any] = getattr(import_module(f".{module}", __package__), name)
    return function


def _lookup(section: str, versioned: Container[str], name: str) -> Callable[..., Any] | None:
    """`versioned`: programs whose names may end in a version, as python3.11 and bash-5.2."""
    reference = TABLES[section].get(name)
    if reference is None and name[-1:].isdigit() and (bare := name.rstrip("0123456789.").rstrip("-")) in versioned:
        reference = TABLES[section].get(bare)
    return None if reference is None else _function(reference)


follower_of = functools.partial(_lookup, "followers", TABLES["followers"])


@functools.lru_cache(4096)
def known(name: str) -> Known:
    """What is known about a program by its name."""
    return Known(
        _lookup("builtins", (), name),
        _lookup("handlers", SHELLS | LANGUAGES.keys(), name),
        _lookup("makers", (), name),
        _lookup("changers", (), name),
    )


def note_effects(walk: Walk, call: Call, known: Known) -> None:
    """What it does besides printing: files that it runs or writes, shells that it opens."""
    if walk.sources is not None:
        script_programs.follow(walk, call)
    if (
        walk.under
        and call.stdin is None
        and opens_root_shell(walk.under, call.name, call.args, followed=known.follow is not None)
    ):
        walk.report("privilege.root_shell", call.argv)
    for target in output_files(call):
        walk.on_write(target, "-o", unknown())
    files_made(walk, call, known)


def output(walk: Walk, call: Call) -> Value:
    """What it prints, if anything reads that: computed where the input is known, else unknown with its provenance."""
    if not walk.readers and call.name not in _COPY_INPUT and walk.state.settings.get("&1") is None:
        return EMPTY
    if call.stdin is not None:
        walk.spend(len(call.stdin.text))
    out = None
    if call.name in text_emulation.PROGRAMS:
        out = text_emulation.output(call.name, call.args, call.stdin, walk.known_file)
    if out is not None and Taint.ENDLESS in out.taints and output_provenance.ends(call.name, call.args):
        out = Value(out.text, out.taints - {Taint.ENDLESS})
    if out is None:
        out = output_provenance.path_output(walk, call)
    if out is None:
        out = output_provenance.unknown_output(walk, call)
    if call.name in _COPY_INPUT:
        appends = any(re.match(r"-[a-z]*a|--a", arg) for arg in call.args)
        for arg in call.args:
            if arg[:1] != "-":
                walk.emit(out, [(">>" if appends else ">", arg, True)])
    return out
