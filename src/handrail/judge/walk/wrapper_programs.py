"""Follow programs that run another one given on their command line, as the table of wrappers says."""

import itertools
import re
import shlex
from collections.abc import Sequence

from ..grammar.lexical import decode_escapes
from ..programs.tables import SHELLS, TERMINALS, WRAPPERS, Wrapper, skip_options
from ..values.data_files import Patterns, Words
from ..values.taints import NO_TAINTS, WIDE, Taint, taints_of
from ..values.word_values import EMPTY, UNKNOWN, Arg, Value, make_arg, unknown
from . import output_provenance
from .walk import Call, Walk

_RE = Patterns(__file__)

_WORDS = Words(__file__)
_MAX_ROOTS = 16
_MAX_ITEMS = 64
_MAX_LINES = 16
_MAX_INPUT = 20_000
_XARGS_WORDS = "arg-file delimiter max-args max-procs max-chars process-slot-var"
_PARALLEL_WORDS = (
    "jobs arg-file sshlogin colsep delay timeout results joblog halt load memfree retries workdir shuf-seed tagstring"
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
            out = walk.run_text(
                Value(" ".join(rest), taints_of(rest), rest[0].word if len(rest) == 1 else None), call.stdin, "-c"
            )
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
        if match := _RE.splits.fullmatch(arg):
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
        program = [value for option, value in options if option in _WORDS.daemon_program and value is not None]
        return [*program[-1:], *rest] if program else None
    if name == "setarch" and rest and rest[0] not in _WORDS.architectures:
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


def _find(walk: Walk, call: Call) -> Value | None:
    args = call.args
    count = next((place for place, arg in enumerate(args) if arg[:1] in ("-", "(", "!")), len(args))
    roots: Sequence[Arg] = args[:count] or [Arg(".")]
    if len(roots) > _MAX_ROOTS:
        roots = [*roots[:_MAX_ROOTS], Arg(UNKNOWN)]
    found = [place for root in roots for place in _found(root, args)]
    place = count
    while place < len(args):
        if args[place] not in ("-exec", "-execdir", "-ok", "-okdir"):
            place += 1
            continue
        end = place + 1
        while end < len(args) and args[end] != ";" and not (args[end] == "+" and args[end - 1] == "{}"):
            end += 1
        for command in _filled(args[place + 1 : end], found):
            walk.start(command, call.stdin, under="find")
        place = end
    for arg, target in itertools.pairwise(args):
        if arg in _WORDS.find_writes:
            walk.emit(unknown(WIDE), [(">", target, True)])
    if not _WORDS.find_prints_other.isdisjoint(args):
        return None
    separator = "\0" if "-print0" in args else "\n"
    return Value("".join(f"{path}{separator}" for path in found), WIDE)


def _filled(words: Sequence[Arg], found: Sequence[str]) -> list[list[Arg]]:
    """The command lines that find runs: with all paths at once, or one by one where `{}` is part of a word."""
    if any("{}" in word and word != "{}" for word in words):
        return [
            [word.like(word.replace("{}", path), taints=WIDE) if "{}" in word else word for word in words]
            for path in found
        ]
    line: list[Arg] = []
    for word in words:
        line += [word.like(path, taints=WIDE) for path in found] if word == "{}" else [word]
    return [line]


def _found(root: str, args: Sequence[Arg]) -> list[str]:
    """Paths that find may return below a root: also the root itself, when no test selects among them."""
    names = [following for arg, following in itertools.pairwise(args) if arg in ("-name", "-iname", "-path")]
    below = root.rstrip("/")
    if names:
        return [f"{below}/{UNKNOWN}/{names[-1].lstrip('/')}"]
    return [f"{below}/{UNKNOWN}"] if not _WORDS.find_selects.isdisjoint(args) else [root, f"{below}/{UNKNOWN}"]


def _fd(walk: Walk, call: Call) -> None:
    for place, arg in enumerate(call.args):
        if arg in ("-x", "-X", "--exec", "--exec-batch") and place + 1 < len(call.args):
            command = list(call.args[place + 1 :])
            found = make_arg(f"./{UNKNOWN}", taints=WIDE)
            if any("{" in word for word in command):
                command = [word.like(re.sub(r"\{[/.]*\}", found, word), taints=WIDE) for word in command]
            else:
                command.append(found)
            walk.start(command, call.stdin, under="fd")
            return


def _xargs(walk: Walk, call: Call) -> Value | None:
    start, options = skip_options(call.args, "adEILnPsS", _XARGS_WORDS)
    given = dict(options)
    replace = next((str(value or "{}") for option, value in options if option in ("-I", "-i", "--replace", "-J")), "")
    source = given.get("-a", given.get("--arg-file"))
    value = walk.read_file(source) if source is not None else call.stdin
    command = list(call.args[start:]) or [Arg("echo")]
    items = _items(value, given, by_line=bool(replace))
    return _with_items(walk, call, command, items, replace)


def _parallel(walk: Walk, call: Call) -> Value | None:
    start, options = skip_options(call.args, "jIaSNLPnlDdE", _PARALLEL_WORDS)
    given = dict(options)
    if not given.keys().isdisjoint(("--dry-run", "--dryrun")):
        return None
    source = given.get("-a", given.get("--arg-file"))
    value = walk.read_file(source) if source is not None else call.stdin
    command = list(call.args[start:])
    for separator in (":::", ":::+", "::::"):
        if separator in command:
            place = command.index(Arg(separator))
            listed, command = command[place + 1 :], command[:place]
            value = Value("\n".join(arg for arg in listed if not arg.startswith(":::")), taints_of(listed))
            if separator == "::::":
                value = walk.read_file(listed[0]) if listed else value
            break
    if command and not given.keys().isdisjoint(("--pipe", "--spreadstdin")):
        with walk.wrapped("parallel"), walk.subshell():
            return walk.run_text(Value(" ".join(command), taints_of(command)), call.stdin, "-c")
    items = _items(value, given, by_line=True)
    replace = str(given.get("-I") or "{}")
    if not command:
        with walk.wrapped("parallel"):
            return walk.run_text(Value("\n".join(items), taints_of(items)), None, "stdin") if items else None
    if not any(replace in word for word in command):
        command.append(Arg(replace))
    out: Value | None = None
    for item in _bounded(items, _MAX_LINES) or [make_arg(UNKNOWN, taints=WIDE)]:
        texts = [word.replace(replace, item) for word in command]
        with walk.wrapped("parallel"), walk.subshell():
            out = walk.run_text(Value(" ".join(texts), taints_of(command) | item.taints), None, "-c")
    return out


def _items(value: Value | None, given: dict[str, Arg | None], *, by_line: bool) -> list[Arg]:
    """How the input is cut: at NULs, at a delimiter, by line, else at blanks with quotes."""
    if value is None or value.text.strip() == UNKNOWN or len(value.text) > _MAX_INPUT:
        return [make_arg(UNKNOWN, taints=(value.taints if value is not None else NO_TAINTS) | WIDE)]
    text = value.text
    more = [] if value.known else [make_arg(UNKNOWN, taints=value.taints | WIDE)]
    delimiter = given.get("-d") or given.get("--delimiter")
    if "-0" in given or "--null" in given:
        found = text.split("\0")
    elif delimiter:
        found = text.split(decode_escapes(delimiter))
    elif by_line:
        found = [line.strip() for line in text.split("\n")]
    else:
        words = re.findall(r"(?:'[^'\n]*'|\"[^\"\n]*\"|\\.|[^\s'\"\\])+", text)
        found = [re.sub(r"\\(.)|['\"]", r"\1", word) for word in words]
    return more + _bounded([make_arg(item, taints=value.taints) for item in found if item], _MAX_ITEMS)


def _bounded(items: list[Arg], most: int) -> list[Arg]:
    """The first ones; when there are more, an unknown one stands for the rest."""
    return items if len(items) <= most else [*items[:most], make_arg(UNKNOWN, taints=taints_of(items) | WIDE)]


def _with_items(walk: Walk, call: Call, command: list[Arg], items: list[Arg], replace: str) -> Value | None:
    if replace:
        lines = [
            [
                word.like(word.replace(replace, item), taints=item.taints) if replace in word else word
                for word in command
            ]
            for item in _bounded(items, _MAX_LINES)
        ]
    else:
        lines = [[*command, *items]]
    out: Value | None = None
    for line in lines:
        out = walk.start(line, EMPTY if line[0] in _WORDS.copy_input else None, under="xargs")
    fetched = call.stdin is not None and Taint.NETWORK in call.stdin.taints
    if fetched and command[0].rsplit("/", 1)[-1] in SHELLS:
        walk.report("rce.download_to_shell", call.argv)
    return out


def _su(walk: Walk, call: Call) -> Value | None:
    letters, words = "cgGsuwT", "command group supp-group shell user whitelist-environment session-command"
    start, options = skip_options(call.args, letters, words)
    args = list(call.args)
    if args[start : start + 1] == ["-"]:  # a login shell
        start += 1
        options += skip_options(args[start:], letters, words)[1]
    if start < len(args):  # options may follow the user
        options += skip_options(args[start + 1 :], letters, words)[1]
    text = next((value for option, value in options if option in ("-c", "--command", "--session-command")), None)
    with walk.wrapped(call.name):
        if text is not None:
            return walk.run_text(text.value(), call.stdin, "-c")
        if call.name == "runuser" and any(option in ("-u", "--user") for option, _ in options) and start < len(args):
            return walk.start(args[start:], call.stdin)
    if call.stdin is not None:
        return walk.run_text(call.stdin, None, "stdin")
    if not args or args[0] not in ("--help", "-h", "--version", "-V"):
        walk.report("privilege.root_shell", call.argv)
    return None
