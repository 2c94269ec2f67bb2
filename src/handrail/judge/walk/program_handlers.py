"""What is known about single programs, as the walk asks for it: it is given this module as its `Programs`."""

from __future__ import annotations

import re

from ..programs.interpreter_table import LANGUAGES, SHELLS
from ..programs.shell_escapes import opens_root_shell
from ..values.word_values import Taint, Value, unknown
from . import (
    console_programs,
    interpreters,
    launcher_programs,
    output_provenance,
    path_output,
    program_options,
    remote_programs,
    script_programs,
    text_emulation,
    text_programs,
    unlisted_programs,
    wrapper_programs,
)
from .builtins import BUILTINS
from .files_made import files_made, output_files
from .program_names import possible_names
from .walk import Call, Handler, Walk

__all__ = ["builtin_of", "follow_unlisted", "handler_of", "note_effects", "output", "possible_names", "source_file"]

HANDLERS: dict[str, Handler] = {
    **remote_programs.HANDLERS,
    **interpreters.HANDLERS,
    **launcher_programs.HANDLERS,
    **program_options.HANDLERS,
    **text_programs.HANDLERS,
    **wrapper_programs.HANDLERS,
    **program_options.OVER_WRAPPERS,
    **console_programs.HANDLERS,
}
follow_unlisted = unlisted_programs.follow
source_file = script_programs.source_file


def builtin_of(name: str) -> Handler | None:
    """What one of the shell's own commands does."""
    return BUILTINS.get(name)


def handler_of(name: str) -> Handler | None:
    """How to follow a program that runs others, by its name."""
    handler = HANDLERS.get(name)
    if handler is None and name[-1:].isdigit():  # python3.11, bash-5.2
        bare = name.rstrip("0123456789.").rstrip("-")
        return HANDLERS[bare] if bare in LANGUAGES or bare in SHELLS else None
    return handler


def note_effects(walk: Walk, call: Call, *, followed: bool) -> None:
    """What it does besides printing: files that it runs or writes, shells that it opens. `followed`: what it runs was judged."""
    if walk.sources is not None:
        script_programs.follow(walk, call)
    if walk.under and call.stdin is None and opens_root_shell(walk.under, call.name, call.args, followed=followed):
        walk.report("privilege.root_shell", call.argv)
    for target in output_files(call):
        walk.on_write(target, "-o", unknown())
    files_made(walk, call)


def output(walk: Walk, call: Call) -> Value:
    """What it prints: computed where the input is known, else unknown with its provenance."""
    if call.stdin is not None:
        walk.spend(len(call.stdin.text))
    out = text_emulation.output(call.name, call.args, call.stdin, walk.known_file)
    if out is not None and Taint.ENDLESS in out.taints and output_provenance.ends(call.name, call.args):
        out = Value(out.text, out.taints - {Taint.ENDLESS})
    if out is None:
        out = path_output.output(walk, call)
    if out is None:
        out = output_provenance.unknown_output(walk, call)
    if call.name in ("tee", "sponge"):
        appends = any(re.match(r"-[a-z]*a|--a", arg) for arg in call.args)
        for arg in call.args:
            if arg[:1] != "-":
                walk.emit(out, [(">>" if appends else ">", arg, True)])
    return out
