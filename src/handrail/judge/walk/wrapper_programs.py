"""Follow programs that run another one given on their command line, as the table of wrappers says."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from ..programs.tables import TERMINALS, WRAPPERS
from ..programs.wrapper_options import Wrapper, skip_options
from ..values.word_values import EMPTY, UNKNOWN, Arg, Value, taints_of
from . import output_provenance
from .walk import Call, Walk

_DAEMON_PROGRAM = frozenset(("-x", "--exec", "-a", "--startas"))
_SPLITS = re.compile(r"-([iv0]*)S(.*)|--split-string(?:=(.*))?", re.S)
_ARCHITECTURES = frozenset(
    "linux32 linux64 i386 i486 i586 i686 x86_64 athlon ppc ppc64 ppc64le s390 s390x arm64 aarch64".split()
)


def _env(walk: Walk, call: Call) -> Value | None:
    """`env -S "words"`, and functions that the next shell gets as variables."""
    for arg in call.args:
        if function := re.fullmatch(r"(?s)BASH_FUNC_(\w+)%%=(\(\).*)", arg):
            walk.run_text(Value(f"{function[1]} {function[2]}; {function[1]}", arg.taints), None, "-c")
    if (split := _split_up(call.args)) is not None:
        return walk.start([call.program, *split], call.stdin)
    return wrap(walk, call)


def wrap(walk: Walk, call: Call) -> Value | None:
    """Run what a wrapper runs."""
    name, wrapper = call.name, WRAPPERS[call.name]
    letters = wrapper.letters + "".join(option[1] for option in wrapper.text.split() if len(option) == 2)
    words = " ".join((wrapper.words, *(option[2:] for option in wrapper.text.split() if option[:2] == "--")))
    start, options = skip_options(call.args, letters, words, pairs=wrapper.pairs, assignments=wrapper.assignments)
    given = {option for option, _ in options}
    if name == "sudo" and not given.isdisjoint(("-e", "--edit")):
        return walk.run([Arg("sudoedit"), *call.args[start:]], call.stdin, functions=False)
    if not given.isdisjoint(wrapper.inert.split()):
        if name == "command" and start < len(call.args):
            return Value(f"{call.args[start]}\n")
        return EMPTY
    for option, value in options:
        if option in wrapper.text.split() and value is not None:
            with walk.wrapped(name):
                return walk.run_text(value.value(), call.stdin, "-c")
        if option == "=" and value is not None:
            variable, _, text = value.partition("=")
            walk.on_assign(variable, Value(text, value.taints, value.word))
    _take_password(call, given)
    rest = _before_command(call, wrapper, call.args[start:], options)
    if rest is None:
        return EMPTY
    if wrapper.raises and not rest and not given.isdisjoint(("-s", "-i", "--shell", "--login")):
        walk.report("privilege.root_shell", call.argv)
    if not rest:
        return output_provenance.unknown_output(walk, call)
    if rest and rest[0][:1] == "-" and rest[0] != "-":
        # Not a program name: an option without a value was taken for one with a value.
        other, _ = skip_options(call.args)
        _run_inside(walk, call, wrapper, options, call.args[other:])
    return _run_inside(walk, call, wrapper, options, rest)


def _take_password(call: Call, given: set[str]) -> None:
    """`sudo -S` reads its first line as a password; the command gets the rest."""
    stdin = call.stdin
    if stdin is None or call.name != "sudo" or given.isdisjoint(("-S", "--stdin")):
        return
    left = stdin.text.partition("\n")[2]
    call.stdin = Value(left, stdin.taints, stdin.word) if left or not stdin.known else None


def _run_inside(
    walk: Walk, call: Call, wrapper: Wrapper, options: list[tuple[str, Arg | None]], rest: Sequence[Arg]
) -> Value:
    name, given = call.name, dict(options)
    directory = next(
        (value for option, value in options if option in wrapper.chdir.split() and value is not None), None
    )
    with walk.wrapped(name):
        mark, cwd = walk.state.mark(), walk.state.cwd
        if directory is not None:
            walk.state.cwd = Value(walk.path(directory))
        if name == "env" and not {"-i", "-", "--ignore-environment"} & given.keys():
            _assign(walk, options)
        if (wrapper.joined and not {"-x", "--exec"} & given.keys()) or (name == "entr" and "-s" in given):
            out = walk.run_text(_together(rest), call.stdin, "-c")
        else:
            builtins = name in ("command", "builtin", "exec", "noglob", "nocorrect")
            out = walk.run(rest, call.stdin, functions=False, builtins=builtins)
        if directory is not None:
            walk.state.cwd = cwd
        if name == "env":
            walk.state.undo(mark)
    return out


def _split_up(args: Sequence[Arg]) -> list[Arg] | None:
    """`env -S 'text' more`, with the words of the text in its place; None when there is no such option."""
    place = 0
    while place < len(args):
        arg = args[place]
        if match := _SPLITS.fullmatch(arg):
            flags = [Arg(f"-{match[1]}")] if match[1] else []
            attached = match[2] or match[3]
            text = arg.like(attached) if attached else args[place + 1] if place + 1 < len(args) else Arg("")
            return [*args[:place], *flags, *_split_string(text), *args[place + (1 if attached else 2) :]]
        if arg[:1] != "-" and "=" not in arg:
            return None
        place += 2 if arg in ("-u", "-C", "-a", "--unset", "--chdir", "--argv0") else 1
    return None


def _assign(walk: Walk, options: list[tuple[str, Arg | None]]) -> None:
    for option, value in options:
        if option == "=" and value is not None:
            variable, _, text = value.partition("=")
            walk.assign(variable, Value(text, value.taints))


def _before_command(
    call: Call, wrapper: Wrapper, rest: Sequence[Arg], options: list[tuple[str, Arg | None]]
) -> Sequence[Arg] | None:
    """What is left when everything before the command is skipped; None when the wrapper does something else."""
    name = call.name
    if wrapper.assignments:
        while rest and (
            re.match(r"[A-Za-z_][\w.]*=", rest[0]) or rest[0] == "-" or (rest[0] == UNKNOWN and len(rest) > 1)
        ):
            options.append(("=", rest[0]))
            rest = rest[1:]
    if name in TERMINALS:
        return _in_terminal(call.args)
    if name == "start-stop-daemon":
        program = [value for option, value in options if option in _DAEMON_PROGRAM and value is not None]
        return [*program[-1:], *rest] if program else None
    if name == "setarch" and rest and rest[0] not in _ARCHITECTURES:
        return rest
    if name == "dotenv" and rest[:1] == ["run"]:
        rest = rest[1:]
    if name in ("nice", "time", "timeout", "stdbuf"):
        while rest and re.fullmatch(r"-\d+|--", rest[0]):
            rest = rest[1:]
    if name == "flock" and len(rest) > 2 and rest[1] in ("-c", "--command"):
        return [Arg("sh"), Arg("-c"), *rest[2:]]
    if name in ("sg", "newgrp") and len(rest) > 2 and rest[1] == "-c":
        return [Arg("sh"), *rest[1:]]
    rest = rest[wrapper.operands :]
    if rest and rest[0] == "--":
        rest = rest[1:]
    return rest


def _in_terminal(args: Sequence[Arg]) -> Sequence[Arg] | None:
    for place, arg in enumerate(args):
        name, equals, value = arg.partition("=")
        if equals and name == "--command":
            return [Arg("sh"), Arg("-c"), arg.like(value)]
        if arg in ("-e", "-x", "--", "--execute", "--command"):
            rest = args[place + 1 :]
            return [Arg("sh"), Arg("-c"), *rest] if len(rest) == 1 else rest
    return None


def _split_string(text: Arg) -> list[Arg]:
    """`env -S` cuts a text into words as a shell would, but expands nothing else."""
    try:
        return [text.like(word) for word in shlex.split(text, posix=True)]
    except ValueError:
        return [text.like(UNKNOWN)]


def _together(words: Sequence[Arg]) -> Value:
    return Value(" ".join(words), taints_of(words), words[0].word if len(words) == 1 else None)
