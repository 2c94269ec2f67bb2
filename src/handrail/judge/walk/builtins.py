"""What the shell's own commands do to the commands after them."""

import itertools
import re
from collections.abc import Sequence

from ..grammar.lexical import decode_escapes
from ..grammar.syntax import Assignment
from ..programs.tables import skip_options
from ..values.taints import NO_TAINTS, WIDE, Taint, taints_of
from ..values.word_values import EMPTY, UNKNOWN, Arg, Array, Either, OtherName, Value, either, joined, unknown
from . import text_emulation
from .fields import split_by
from .walk import Call, Walk

_MAX_READ = 64
_MAX_READ_LINES = 256


def _cd(walk: Walk, call: Call) -> Value | None:
    operands = [arg for arg in call.args if arg[:1] != "-" or arg == "-"]
    target = operands[0] if operands else Arg("~")
    walk.state.cwd = unknown() if target == "-" or call.name == "popd" else Value(walk.path(target))
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
    start, options = skip_options(call.args, "p")
    program = next((value for option, value in options if option == "-p" and value is not None), None)
    if program is not None and walk.is_foreign(program):
        walk.report("env.inject", call.argv)
    for name in call.args[start:] if program is not None else ():
        walk.state.alias(str(name), program.value() if program is not None else None)
    return EMPTY


def _jobs(walk: Walk, call: Call) -> Value | None:
    """`jobs -x command` runs it."""
    if call.args[:1] == ["-x"]:
        return walk.run(call.args[1:], call.stdin)
    return None


def _enable(walk: Walk, call: Call) -> None:
    """`enable -f file name` loads a program into the shell."""
    if any(re.match(r"-[a-z]*f", arg) for arg in call.args):
        walk.report("env.inject", call.argv)


def _shopt(walk: Walk, call: Call) -> None:
    if "lastpipe" in call.args:
        walk.last_in_shell = True


def _leave(walk: Walk, call: Call) -> Value | None:
    """`break`, `continue`, `return`: what comes after it may not run."""
    if call.name == "return" or call.args:
        walk.returns += 1
    walk.breaks += 1
    return EMPTY


def _set(walk: Walk, call: Call) -> Value | None:
    args = call.args
    place = 0
    while place < len(args) and args[place][:1] in ("-", "+") and args[place] not in ("--", "-"):
        place += 2 if re.fullmatch(r"[-+][a-zA-Z]*o", args[place]) else 1
    ended = args[place : place + 1] == ["--"]
    place += ended or args[place : place + 1] == ["-"]
    if ended or place < len(args):
        walk.state.arguments = tuple(arg.value() for arg in args[place:])
    return EMPTY if args else None


def _shift(walk: Walk, call: Call) -> Value | None:
    count = call.args[0] if call.args else Arg("1")
    if walk.state.arguments is not None:
        walk.state.arguments = walk.state.arguments[int(count) :] if count.isdigit() else None
    return EMPTY


def _read(walk: Walk, call: Call) -> Value | None:
    """Each variable gets its part of a line: which line of several is not known."""
    start, options = skip_options(call.args, "adinNptu")
    names: Sequence[Arg] = call.args[start:] or [Arg("REPLY")]
    values = dict(options)
    array, source = values.get("-a"), call.stdin
    if "-u" in values:
        source = walk.state.files.get(f"/dev/fd/{values['-u']}")
    for arg in call.args:
        run_index(walk, arg)
    lines = _lines(source, values) if source is not None else None
    taints = source.taints if source is not None else NO_TAINTS
    separators = walk.lookup("IFS")
    if lines is None or (isinstance(separators, Value) and not separators.known):
        if walk.loops:  # a list of which every line is used
            taints |= WIDE
        for name in [*names, *([array] if array is not None else [])]:
            walk.variables.assign_to(name.value(), unknown(taints))
        return EMPTY
    cuts = separators.text if isinstance(separators, Value) else " \t\n"
    blanks = "".join(char for char in cuts if char in " \t\n")
    stripped = [line.strip(blanks) for line in lines]
    single = array is None and len(names) == 1
    rows = [[line] if single else split_by(line, cuts, len(names) - 1 if array is None else 0) for line in stripped]
    count = len(names) if array is None else max(map(len, rows))
    # Each gets the value that it has in one of the lines, or nothing.
    found = [either([Value((*row, "")[min(place, len(row))], taints) for row in rows]) for place in range(count)]
    if array is not None:
        walk.assign(str(array), Array({str(index): value or EMPTY for index, value in enumerate(found)}))
        return EMPTY
    for name, value in zip(names, found, strict=True):
        walk.variables.assign_to(name.value(), value or EMPTY)
    return EMPTY


def _lines(source: Value, options: dict[str, Arg | None]) -> list[str] | None:
    """The lines that `read` may get; None when that is not known."""
    by_line = source.known or (Taint.WIDE in source.taints and source.text.strip() != UNKNOWN)  # a list of paths
    if not by_line or "-n" in options or "-N" in options:
        return None
    text, delimiter = source.text, options.get("-d")
    end = "\n" if delimiter is None else delimiter[:1] or "\0"
    text = text if end == "\0" else text.replace("\0", "")
    if "-r" not in options and "\\" in text:
        text = re.sub(r"(?s)\\(.)", lambda match: "" if match[1] == "\n" else match[1], text)
    lines = text.removesuffix(end).split(end) if delimiter is None else text.split(end)
    return lines if len(lines) <= _MAX_READ else None


def _mapfile(walk: Walk, call: Call) -> Value | None:
    start, options = skip_options(call.args, "dnOsuCc")
    name = call.args[start] if start < len(call.args) else Arg("MAPFILE")
    values = dict(options)
    source = call.stdin
    if "-u" in values:
        source = walk.state.files.get(f"/dev/fd/{values['-u']}")
    for arg in call.args:
        run_index(walk, arg)
    taints = source.taints if source is not None else NO_TAINTS
    callback = values.get("-C")
    if callback is not None:  # it gets the index and the line as two more arguments
        walk.run_text(Value(f"{callback} {UNKNOWN} {UNKNOWN}", callback.taints | taints), None, "mapfile")
    if source is None or not source.known or not values.keys().isdisjoint(("-n", "-O", "-s")) or UNKNOWN in name:
        value = Array({str(index): unknown(taints | WIDE) for index in range(2)})
    else:
        delimiter = values.get("-d")
        end = "\n" if delimiter is None else delimiter[:1] or "\0"
        lines = source.text.removesuffix(end).split(end)
        if len(lines) > _MAX_READ_LINES:
            lines = [*lines[:_MAX_READ_LINES], UNKNOWN]
        value = Array({str(index): Value(line, taints) for index, line in enumerate(lines)})
    if UNKNOWN in name:
        walk.variables.forget()
    else:
        walk.assign(str(name), value)
    return EMPTY


def _getopts(walk: Walk, call: Call) -> Value | None:
    for arg in call.args[1:2]:
        run_index(walk, arg)
        walk.variables.assign_to(arg.value(), unknown())
    walk.assign("OPTARG", unknown())
    return EMPTY


def _printf(walk: Walk, call: Call) -> Value | None:
    if len(call.args) <= 2 or call.args[0] != "-v":
        return None
    run_index(walk, call.args[1])
    walk.variables.assign_to(call.args[1].value(), Value(text_emulation.printf(call.args[2:]), taints_of(call.args)))
    return EMPTY


def _test(walk: Walk, call: Call) -> Value | None:
    for arg in call.args:
        run_index(walk, arg)
    return None if call.name == "wait" else EMPTY


def _let(walk: Walk, call: Call) -> Value | None:
    for arg in call.args:
        run_index(walk, arg)
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
    elif walk.known_file(path) is not None and not isinstance(content, OtherName):
        return walk.run_text(content, call.stdin, "source", same_shell=True)
    elif UNKNOWN in path and not path.rstrip(UNKNOWN):
        walk.report("dynamic.script", [call.program, path])
    elif walk.sources is not None:
        walk.programs.source_file(walk, path, args[1:], call.stdin)
    return unknown()


def _trap(walk: Walk, call: Call) -> Value | None:
    """What a trap runs is judged now; the variables that it sets may change at any time from now on."""
    operands = [arg for arg in call.args if arg not in ("-", "--", "-l", "-p")]
    if len(operands) >= 2 and operands[0]:
        mark = walk.state.mark()
        walk.run_text(operands[0].value(), None, "trap", same_shell=True)
        for (_, name), value in walk.state.undo(mark, only_variables=True).items():
            walk.variables.may_become(name, value)
    return EMPTY


def _complete(walk: Walk, call: Call) -> Value | None:
    """`complete -C command`, `compgen -W words`, `bind -x '"key": command'` and `fc -e editor` name what is run later."""
    if call.name == "fc" and ("-s" in call.args or "-e" in call.args):
        # An earlier command runs again, whichever that was.
        walk.report("dynamic.script", call.argv)
    for option, following in itertools.pairwise([*call.args, Arg("")]):
        glued = option[2:] and option[:2] == "-W"
        name, value = (option[:2], option.like(option[2:])) if glued else (option, following)
        if name == "-W":
            walk.prompt(value.value())
        elif name == "-x":
            walk.run_text(Value(value.lstrip(" \"'").partition(":")[2].strip(" \"'")), None, "-c")
        elif name in ("-C", "-e"):
            walk.run_text(Value(f"{value} {UNKNOWN}" if name == "-C" else str(value)), None, "-c")
        elif name == "-F":
            walk.run([value], None)
        elif call.name == "bind" and (match := re.match(r"(?s)\s*\S+\s*:\s*([\"'])(.*)\1\s*\Z", option)):
            walk.run_text(Value(decode_escapes(match[2])), None, "-c")  # keys that are typed
    return EMPTY


STDIN_PATHS = frozenset(("-", "/dev/stdin", "/proc/self/fd/0", "/dev/fd/0"))


def _export(walk: Walk, call: Call) -> Value | None:
    """`export` and `readonly`."""
    exports = call.name == "export" and "-n" not in call.args
    for node in call.declared:
        walk.variables.make(node)
        _exported(walk, node.name, exports)
        _lock(walk, call.name, node.name)
    for arg in call.args:
        name = _assigned(walk, arg)
        if UNKNOWN in name and exports:  # `export $(grep -v '^#' .env)`
            walk.programs.assign_new(walk)
        if arg[:1] != "-":
            _exported(walk, name, exports)
            _lock(walk, call.name, name)
    return EMPTY if call.declared or not _only_options(call) else None


def _lock(walk: Walk, command: str, name: str) -> None:
    """What is assigned to it later may not take effect."""
    if command == "readonly":
        walk.variables.attributes[name] = walk.variables.attributes.get(name, "") + "r"


def _assigned(walk: Walk, arg: Arg) -> str:
    """Carry out an argument of the form `name=value`; returns the name."""
    name, equals, value = arg.partition("=")
    run_index(walk, arg)
    if arg[:1] == "-":
        return ""
    if equals:
        name, appends = name.removesuffix("+"), name.endswith("+")
        new = Value(value, arg.taints, arg.word)
        if appends:
            old = walk.lookup(name)
            new = joined([old, new]) if isinstance(old, Value) else unknown(new.taints)
        walk.variables.assign_to(Value(name), new)
    elif UNKNOWN in name:
        walk.variables.forget()
    return name


def _only_options(call: Call) -> bool:
    """Whether no name is given: then these print everything that is set."""
    return all(arg[:1] == "-" for arg in call.args)


def _exported(walk: Walk, name: str, exports: bool) -> None:
    if exports:
        walk.variables.exported.add(name)
        walk.on_assign(name, walk.state.variables.get(name))


def _declare(walk: Walk, call: Call) -> Value | None:
    flags = "".join(arg[1:] for arg in call.args if arg[:1] == "-") + ("i" if call.name == "integer" else "")
    given: list[tuple[str, Assignment | Arg]] = [(node.name, node) for node in call.declared]
    given += [(arg.partition("=")[0], arg) for arg in call.args if arg[:1] not in ("-", "+")]
    for name, _ in given:
        if walk.locals is not None and "g" not in flags:
            walk.locals.setdefault(name, walk.state.variables.get(name))
        if "A" in flags:
            walk.assign(name, Array({}, associative=True))
    for name, node in given:
        if "n" in flags:
            target = walk.expander.one(node.value).text if isinstance(node, Assignment) else node.partition("=")[2]
            run_index(walk, Arg(target))
            walk.variables.references[name] = target if name != target else ""
            continue
        if letters := "".join(letter for letter in flags if letter in "ilu"):  # for everything that is assigned later
            walk.variables.attributes[name] = walk.variables.attributes.get(name, "") + letters
        if isinstance(node, Assignment):
            walk.variables.make(node)
        else:
            _assigned(walk, node)
        if isinstance(node, Assignment) or "=" in node:
            _attributes(walk, name, flags)
        else:
            _exported(walk, name, "x" in flags)
    prints = "f" in flags or "p" in flags or _only_options(call)
    return EMPTY if call.declared or not prints else None


def _attributes(walk: Walk, name: str, flags: str) -> None:
    """The value given together with the attributes is changed by them for certain."""
    value = walk.state.variables.get(name)
    value = (value.options[0] or value) if isinstance(value, Either) else value
    if isinstance(value, Value) and not isinstance(value, Either):
        if "i" in flags:
            number = walk.expander.number(value)
            walk.state.assign(name, unknown() if number is None else Value(str(number)))
        elif "l" in flags:
            walk.state.assign(name, Value(value.text.lower(), value.taints))
        elif "u" in flags:
            walk.state.assign(name, Value(value.text.upper(), value.taints))
    if "r" in flags:
        _lock(walk, "readonly", name)
    _exported(walk, name, "x" in flags)


def _unset(walk: Walk, call: Call) -> Value | None:
    for arg in call.args:
        run_index(walk, arg)
        if UNKNOWN in arg:
            walk.variables.forget()
            continue
        if "-v" not in call.args:
            walk.state.define(str(arg), None)
        if "-n" in call.args:
            walk.variables.references.pop(str(arg), None)
        elif "-f" not in call.args:
            walk.variables.unset(str(arg))
    return EMPTY


def run_index(walk: Walk, arg: Arg) -> None:
    """A name such as `a[$(command)]`: the index is expanded once more, by the builtin itself."""
    if "[" not in arg:
        return
    if "$" in arg or "`" in arg:
        walk.prompt(arg.value())
    elif match := re.match(r"[A-Za-z_]\w*\[(.+)\]", arg):
        walk.expander.number(Value(match[1]))
