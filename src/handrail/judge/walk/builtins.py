"""What the shell's own commands do to the commands after them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..programs.wrapper_options import skip_options
from ..values.word_values import EMPTY, UNKNOWN, Arg, Array, Either, Value, taints_of, unknown
from . import text_emulation
from .fields import split_by
from .walk import Call, Handler, Walk


def _cd(walk: Walk, call: Call) -> Value | None:
    operands = [arg for arg in call.args if arg[:1] != "-" or arg == "-"]
    target = operands[0] if operands else Arg("~")
    if target == "-":
        walk.state.cwd = unknown()
    else:
        walk.state.cwd = Value(walk.path(target))
    return EMPTY


def _popd(walk: Walk, _: Call) -> Value | None:
    walk.state.cwd = unknown()
    return EMPTY


def _export(walk: Walk, call: Call) -> Value | None:
    exports = call.name == "export" and "-n" not in call.args
    for node in call.declared:
        walk.make_assignment(node)
        _exported(walk, node.name, exports)
    for arg in call.args:
        name, equals, value = arg.partition("=")
        if equals and re.fullmatch(r"[A-Za-z_]\w*", name):
            walk.assign(name, arg.like(value).value())
        if arg[:1] != "-":
            _exported(walk, name, exports)
        _run_index(walk, arg)
    return EMPTY if call.declared or not _only_options(call) else None


def _only_options(call: Call) -> bool:
    """Whether no name is given: then these print everything that is set."""
    return all(arg[:1] == "-" for arg in call.args)


def _exported(walk: Walk, name: str, exports: bool) -> None:
    if exports:
        walk.exported.add(name)
        walk.on_assign(name, walk.state.variables.get(name))


def _declare(walk: Walk, call: Call) -> Value | None:
    flags = "".join(arg[1:] for arg in call.args if arg[:1] == "-")
    if walk.locals is not None and "g" not in flags:
        for name in (*(node.name for node in call.declared), *(str(arg) for arg in call.args if arg[:1] != "-")):
            walk.locals.setdefault(name, walk.state.variables.get(name))
    if "A" in flags:
        for arg in call.args:
            if arg[:1] != "-":
                walk.assign(str(arg), Array({}, associative=True))
        for node in call.declared:
            walk.assign(node.name, Array({}, associative=True))
    for node in call.declared:
        if "n" in flags:
            walk.references[node.name] = walk.expander.one(node.value).text
            continue
        walk.make_assignment(node)
        _attributes(walk, node.name, flags)
    for arg in call.args:
        _run_index(walk, arg)
    return EMPTY if call.declared or not _only_options(call) else None


def _attributes(walk: Walk, name: str, flags: str) -> None:
    value = walk.state.variables.get(name)
    if isinstance(value, Value) and not isinstance(value, Either):
        if "i" in flags:
            number = walk.expander.number(value)
            walk.assign(name, unknown() if number is None else Value(str(number)))
        elif "l" in flags:
            walk.assign(name, Value(value.text.lower(), value.taints))
        elif "u" in flags:
            walk.assign(name, Value(value.text.upper(), value.taints))
    _exported(walk, name, "x" in flags)


def _unset(walk: Walk, call: Call) -> Value | None:
    only_functions = "-f" in call.args
    for arg in call.args:
        _run_index(walk, arg)
        walk.state.define(str(arg), None)
        if not only_functions:
            walk.assign(str(arg), None)
    return EMPTY


def _alias(walk: Walk, call: Call) -> Value | None:
    for arg in call.args:
        name, equals, value = arg.partition("=")
        if equals:
            walk.state.alias(name, arg.like(value).value())
    return EMPTY


def _unalias(walk: Walk, call: Call) -> Value | None:
    for name in list(walk.state.aliases) if "-a" in call.args else call.args:
        walk.state.alias(str(name), None)
    return EMPTY


def _hash(walk: Walk, call: Call) -> Value | None:
    """`hash -p /bin/rm ls` makes `ls` another program."""
    if len(call.args) == 3 and call.args[0] == "-p":
        walk.state.alias(str(call.args[2]), call.args[1].value())
    return EMPTY


def _set(walk: Walk, call: Call) -> Value | None:
    args = call.args
    if "--" in args:
        place = next(number for number, arg in enumerate(args) if arg == "--")
        walk.state.arguments = tuple(arg.value() for arg in args[place + 1 :])
    elif args and args[0][:1] not in ("-", "+"):
        walk.state.arguments = tuple(arg.value() for arg in args)
    return EMPTY if args else None


def _shift(walk: Walk, call: Call) -> Value | None:
    count = int(call.args[0]) if call.args and call.args[0].isdigit() else 1
    if walk.state.arguments is not None:
        walk.state.arguments = walk.state.arguments[count:]
    return EMPTY


def _read(walk: Walk, call: Call) -> Value | None:
    start, options = skip_options(call.args, "adinNptu")
    names: Sequence[Arg] = call.args[start:] or [Arg("REPLY")]
    values = dict(options)
    array, source = values.get("-a"), call.stdin
    if "-u" in values:
        source = walk.state.files.get(f"/dev/fd/{values['-u']}")
    for name in names:
        _run_index(walk, name)
    if source is None or not source.known:
        taints = source.taints if source is not None else ()
        for name in [*names, *([array] if array is not None else [])]:
            walk.assign(str(name), unknown(taints))
        return EMPTY
    delimiter = values.get("-d")
    line = source.text.split(delimiter[:1] or "\0" if delimiter is not None else "\n", 1)[0]
    separators = walk.lookup("IFS")
    cuts = separators.text if isinstance(separators, Value) and separators.known else " \t\n"
    line = line.strip("".join(char for char in cuts if char in " \t\n"))
    if array is not None:
        fields = split_by(line, cuts)
        walk.assign(str(array), Array({str(index): Value(field, source.taints) for index, field in enumerate(fields)}))
        return EMPTY
    fields = split_by(line, cuts, len(names) - 1) if len(names) > 1 else [line]
    for index, name in enumerate(names):
        walk.assign(str(name), Value(fields[index] if index < len(fields) else "", source.taints))
    return EMPTY


def _mapfile(walk: Walk, call: Call) -> Value | None:
    start, options = skip_options(call.args, "dnOsuCc")
    name = str(call.args[start]) if start < len(call.args) else "MAPFILE"
    callback = dict(options).get("-C")
    if callback is not None:
        walk.run_text(callback.value(), None, "mapfile")
    if call.stdin is None or not call.stdin.known:
        taints = call.stdin.taints if call.stdin is not None else ()
        walk.assign(name, Array({"0": unknown(taints)}))
        return EMPTY
    lines = call.stdin.text.removesuffix("\n").split("\n")
    walk.assign(name, Array({str(index): Value(line, call.stdin.taints) for index, line in enumerate(lines)}))
    return EMPTY


def _printf(walk: Walk, call: Call) -> Value | None:
    if len(call.args) > 2 and call.args[0] == "-v":
        _run_index(walk, call.args[1])
        walk.assign(str(call.args[1]), Value(text_emulation.printf(call.args[2:]), taints_of(call.args)))
        return EMPTY
    return None


def _test(walk: Walk, call: Call) -> Value | None:
    for arg in call.args:
        _run_index(walk, arg)
    return EMPTY


def _let(walk: Walk, call: Call) -> Value | None:
    for arg in call.args:
        _run_index(walk, arg)
        walk.expander.number(arg.value())
    return EMPTY


def _eval(walk: Walk, call: Call) -> Value | None:
    args = call.args[1:] if call.args[:1] == ["--"] else call.args
    text = Value(" ".join(args), taints_of(args), args[0].word if len(args) == 1 else None)
    return walk.run_text(text, call.stdin, "eval", same_shell=True)


def _source(walk: Walk, call: Call) -> Value | None:
    args = call.args[1:] if call.args[:1] == ["--"] else call.args
    path = args[0] if args else Arg("-")  # fish reads the pipe when there is no name
    if path in STDIN_PATHS:
        return walk.run_text(call.stdin or EMPTY, None, "stdin", same_shell=True)
    content = walk.read_file(path)
    if path.startswith(("/dev/tcp/", "/dev/udp/")):
        walk.report("rce.download_to_shell", [call.program, path])
    elif walk.known_file(path) is not None and (
        path.startswith("/dev/fd/") or content.text != UNKNOWN or content.taints
    ):
        return walk.run_text(content, call.stdin, "source", same_shell=True)
    elif UNKNOWN in path and not path.rstrip(UNKNOWN):
        walk.report("dynamic.script", [call.program, path])
    elif walk.sources is not None:
        walk.programs.source_file(walk, path, args[1:], call.stdin)
    return unknown()


def _trap(walk: Walk, call: Call) -> Value | None:
    operands = [arg for arg in call.args if arg not in ("-", "--", "-l", "-p")]
    if len(operands) >= 2 and operands[0]:
        with walk.subshell():
            walk.run_text(operands[0].value(), None, "trap", same_shell=True)
    return EMPTY


def _complete(walk: Walk, call: Call) -> Value | None:
    """`complete -C command`, `bind -x '"key": command'` and `fc -e editor` name what is run later."""
    for option, following in zip(call.args, call.args[1:], strict=False):
        if option in ("-C", "-x", "-e", "-F"):
            walk.run_text(
                Value(following.rpartition(":")[2].strip(" \"'") if option == "-x" else str(following)), None, "-c"
            )
    return EMPTY


def _run_index(walk: Walk, arg: Arg) -> None:
    """A name such as `a[$(command)]`: the index is expanded once more, by the builtin itself."""
    if "[" in arg and ("$(" in arg or "`" in arg):
        walk.prompt(arg.value())


STDIN_PATHS = frozenset(("-", "/dev/stdin", "/proc/self/fd/0", "/dev/fd/0"))

BUILTINS: dict[str, Handler] = {
    "cd": _cd,
    "pushd": _cd,
    "popd": _popd,
    "export": _export,
    "readonly": _export,
    "local": _declare,
    "declare": _declare,
    "typeset": _declare,
    "unset": _unset,
    "alias": _alias,
    "unalias": _unalias,
    "hash": _hash,
    "set": _set,
    "shift": _shift,
    "read": _read,
    "mapfile": _mapfile,
    "readarray": _mapfile,
    "printf": _printf,
    "test": _test,
    "[": _test,
    "let": _let,
    "eval": _eval,
    "source": _source,
    ".": _source,
    "trap": _trap,
    "complete": _complete,
    "compgen": _complete,
    "bind": _complete,
    "fc": _complete,
}
