"""Follow the commands inside scripts for text programs and consoles: awk, sed, vim, ed, m4, nmap, mongosh."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

from ..grammar.lexical import decode_escapes
from ..programs.endless_loops import loops_forever
from ..programs.tables import skip_options
from ..values.data_files import Patterns, read_tables
from ..values.taints import Taint
from ..values.word_values import UNKNOWN, Arg, Value, make_arg, unknown
from .builtins import STDIN_PATHS
from .interpreters import judge_code
from .judgement import Limit
from .program_options import follow_ssh_copies
from .walk import Call, Walk

_RE = Patterns(__file__)
_VIM_FILES = {"lu": "lua", "py": "python3", "ru": "ruby"}
_FILES = ("-f", "--file", "-E", "--exec", "-i", "--include")
_MAX_SCRIPT = 100_000
_MAX_PARTS = 100
_LOOK_BACK = 300
_MAX_TEXT = 100_000


def _awk(walk: Walk, call: Call) -> None:
    start, options = skip_options(call.args, "FvfieEoDlL", "file field-separator assign include exec source load")
    texts = [value for option, value in options if option in ("-e", "--source") and value is not None]
    if not texts and not any(option in ("-f", "--file", "-E", "--exec") for option, _ in options):
        texts = list(call.args[start : start + 1])
    options += [("-i", text.like(name)) for text in texts for name in _RE.awk_includes.findall(text)]
    texts += _scripts(walk, call, options)
    loaded = [value for option, value in options if option in ("-l", "--load") and value]
    if any("/" in name for name in (*loaded, *_RE.awk_loads.findall(" ".join(texts)))):
        walk.report("env.inject", call.argv)
    settings = [value for option, value in options if option in ("-v", "--assign") and value is not None]
    given = {
        name: arg.like(value) for arg in (*settings, *call.args[start:]) for name, _, value in [arg.partition("=")]
    }
    for text in texts:
        if text == UNKNOWN:
            walk.report("rce.download_to_shell" if Taint.NETWORK in text.taints else "dynamic.script", call.argv)
        elif not _too_long(walk, call, text):
            _awk_program(walk, text, given)


def _too_long(walk: Walk, call: Call, text: str) -> bool:
    """Report a script that is longer than is read."""
    if len(text) > _MAX_SCRIPT:
        walk.report("limit.exceeded", call.argv)
        return True
    return False


def _scripts(walk: Walk, call: Call, options: list[tuple[str, Arg | None]]) -> list[Arg]:
    """What is in the files after `-f`, if the command itself makes them."""
    files = [value for option, value in options if option in _FILES and value is not None]
    contents = [call.stdin if file in STDIN_PATHS else walk.known_file(file) for file in files]
    return [make_arg(content.text, taints=content.taints) for content in contents if content is not None]


def _awk_program(walk: Walk, text: Arg, given: dict[str, Arg]) -> None:
    """`given`: the variables that are set on the command line."""
    strings: list[str] = []

    def kept(match: re.Match[str]) -> str:
        if match[1] is None:
            return " "
        strings.append(decode_escapes(match[1]))
        return f"\ue001{len(strings) - 1}\ue001"

    code = _RE.awk_token.sub(kept, _RE.awk_home.sub('"~"', text))
    code = _RE.awk_joined.sub(lambda match: _joined_home(match, strings), code)
    if loops_forever(code) and any(string.rstrip().endswith("&") for string in strings):
        walk.report("proc.fork_bomb", [text])
    if loops_forever(code) and _RE.awk_fills.search(code) and not _RE.awk_leaves.search(code):
        walk.report("disk.fill", [text])
    for match in re.finditer(r"\bsystem\s*\(|@\w+\s*\(", code):  # a function by its name in a variable may be that one
        _awk_run(walk, text, _until_parenthesis(code, match.end()), strings)
    for match in re.finditer(r"\|&?\s{0,99}getline\b", code):
        before = re.split(r"[;{}\n|&(]", code[max(0, match.start() - _LOOK_BACK) : match.start()])[-1]
        _awk_run(walk, text, before, strings)
    for match in re.finditer(r"(?<!\|)\|(?!\|)&?\s{0,99}(?!getline)([^;}\n|]{1,2000})", code):
        if re.search(r"\bprintf?\b[^;{}\n]*\Z", code[max(0, match.start() - _LOOK_BACK) : match.start()]):
            _awk_run(walk, text, match[1], strings, unknown())
    _awk_files(walk, text, code, strings, given)


def _joined_home(match: re.Match[str], strings: list[str]) -> str:
    """The home directory and the text after it as one string."""
    if strings[int(match[1])] != "~":
        return match[0]
    strings.append("~" + strings[int(match[2])])
    return f"\ue001{len(strings) - 1}\ue001"


def _written(walk: Walk, target: Arg) -> None:
    walk.on_write(target, ">", Value(UNKNOWN))
    walk.state.write(walk.path(target), unknown())


def _awk_files(walk: Walk, text: Arg, code: str, strings: list[str], given: dict[str, Arg]) -> None:
    """The files that a program reads and writes."""
    for match in re.finditer(r"\bgetline\b[^;}\n<|]{0,300}<\s{0,99}\ue001(\d+)\ue001", code):
        walk.read_file(text.like(strings[int(match[1])]))
    for match in re.finditer(r"\bprintf?\b[^;}\n>]{0,300}>>?\s{0,99}\ue001(\d+)\ue001", code):
        _written(walk, text.like(strings[int(match[1])]))
    for name in set(re.findall(r"\bprintf?\b[^;}\n>]{0,300}>>?\s{0,99}([A-Za-z_]\w*)", code)):
        for match in re.finditer(rf"\b{name}\s*=\s*\ue001(\d+)\ue001", code):  # every value that it may have
            _written(walk, text.like(strings[int(match[1])]))
        if name in given:
            _written(walk, given[name])


def _awk_run(walk: Walk, text: Arg, expression: str, strings: list[str], stdin: Value | None = None) -> None:
    """Run a concatenation: its strings are known, the rest is not."""
    pieces = _RE.awk_string.split(expression)
    command = "".join(
        strings[int(piece)] if number % 2 else UNKNOWN if piece.strip() else "" for number, piece in enumerate(pieces)
    )
    once = (command, stdin is None, walk.cwd, walk.place, id(walk.source_map), walk.judgement.scope)
    if once in walk.judgement.seen:
        return
    walk.judgement.seen.add(once)
    with walk.wrapped("awk"), walk.subshell():
        if command.startswith(UNKNOWN):
            walk.report("dynamic.script", [text])
        else:
            found = text.taints | {Taint.WIDE} if UNKNOWN in command else text.taints  # one line after the other
            walk.run_text(Value(command, found), stdin, "-c")


def _until_parenthesis(code: str, start: int) -> str:
    level = 1
    for place in range(start, len(code)):
        level += (code[place] == "(") - (code[place] == ")")
        if not level:
            return code[start:place]
    return code[start:]


def _sed(walk: Walk, call: Call) -> None:
    _, options = skip_options(call.args, "eflE", "expression file line-length")
    texts = [value for option, value in options if option in ("-e", "--expression") and value is not None]
    if not texts and not any(option in ("-f", "--file") for option, _ in options):
        operands = [arg for arg in call.args if arg[:1] != "-"]
        texts = operands[:1]
    for text in (*texts, *_scripts(walk, call, options)):
        if not _too_long(walk, call, text):
            _sed_script(walk, call, text)


def _sed_script(walk: Walk, call: Call, text: Arg) -> None:
    place = 0
    while place < len(text):
        match = _RE.sed_address.match(text, place)
        place = match.end() if match else place
        command = text[place : place + 1]
        place += 1
        if command in ("s", "y"):
            place = _sed_substitution(walk, call, text, place)
        elif command in ("e", "w", "W", "r", "R", "a", "i", "c", "#", ":", "b", "t", "T"):
            end = text.find("\n", place)
            rest = text[place : end if end >= 0 else len(text)].strip()
            if command in ":btT":
                rest = rest.split(";")[0].split("}")[0]
                end = place + len(rest)
            place = end if end >= 0 else len(text)
            if command == "e":
                _sed_execute(walk, call, text, rest)
            elif command in ("w", "W") and rest:
                _written(walk, text.like(rest))


def _sed_substitution(walk: Walk, call: Call, text: Arg, place: int) -> int:
    """`s/a/b/flags` from its delimiter on; where it ends."""
    delimiter = text[place : place + 1]
    place += 1
    for _ in range(2):
        while place < len(text) and text[place] != delimiter:
            place += 2 if text[place] == "\\" else 1
        place += 1
    flags = re.compile(r"[gpIimMe0-9]*").match(text, place)
    end = flags.end() if flags else place
    if flags and "e" in flags.group():
        _sed_execute(walk, call, text, "")
    if text[end : end + 1] == "w":
        line = text[end + 1 :].split("\n", 1)[0]
        _written(walk, text.like(line.strip()))
        return end + 1 + len(line)
    return end


def _sed_execute(walk: Walk, call: Call, text: Arg, command: str) -> None:
    if not command:
        walk.report("dynamic.script", call.argv)
        return
    walk.start_text(Value(command, text.taints), None, under="sed")


def _vim(walk: Walk, call: Call) -> None:
    for arg, text in _editor_commands(walk, call):
        if match := _RE.vim_language.match(text):
            language = "python" if match[1].startswith("py") else match[1].removesuffix("do")
            judge_code(walk, call, language, Value(match[2]))
            continue
        if match := _RE.vim_file.match(text):
            program = [call.program, Arg("-S")] if match[1].startswith("so") else [Arg(_VIM_FILES[match[1][:2]])]
            walk.run([*program, arg.like(match[2])], None, functions=False)
            continue
        for rest in _parts(text):
            if match := _RE.vim_writes.match(rest):
                walk.on_write(arg.like(match[1]), ">", unknown())
            if match := _RE.vim_runs.match(rest):
                filtered = unknown() if rest.lstrip(": ")[:1] in tuple("%.$0123456789") else None
                walk.run_text(Value(match[1], arg.taints, arg.word), filtered, "-c")
                break
            if match := _RE.vim_pipes.match(rest):
                walk.run_text(Value(match[1]), unknown(), "-c")
                break
            if match := _RE.vim_terminal.match(rest):
                walk.run_text(Value(match[1].replace("\\ ", " ")), None, "-c")
            line = rest.partition("|")[0]
            if match := _RE.vim_executes.match(line):
                walk.run_text(Value(match[1] or UNKNOWN, arg.taints, arg.word), None, "-c")
            if match := _RE.vim_deletes.search(line):
                walk.run([Arg("rm"), Arg("-r"), Arg(_vim_text(match[1]))], None, functions=False)
            if match := _RE.vim_system.search(line):
                walk.run_text(Value(_vim_text(match[1]), arg.taints), None, "-c")


def _vim_text(expression: str) -> str:
    """What an expression is worth: strings put together, or the words of a list."""
    texts = []
    for variable, text, other in _RE.vim_text.findall(expression):
        if variable or other:
            texts.append({"HOME": "~", ",": " "}.get(variable or other, UNKNOWN))
        else:
            texts.append(text.replace("$HOME", "~"))
    return "".join(texts) or UNKNOWN


def _parts(text: str) -> Iterator[str]:
    """What follows the start and each bar: some commands take all the rest, with its bars."""
    for _ in range(_MAX_PARTS):
        yield text
        text = text.partition("|")[2]
        if not text:
            return
    raise Limit("an editor's command with too many parts")


def _editor_commands(walk: Walk, call: Call) -> Iterator[tuple[Arg, str]]:
    """The commands after `-c` and `+`, in a script that the command has made, and in the input of `ex`."""
    for place, arg in enumerate(call.args):
        if (arg == "--cmd" or re.fullmatch("-[A-Za-z]*c", arg)) and place + 1 < len(call.args):
            yield arg, str(call.args[place + 1])
        elif arg[:1] == "+":
            yield arg, arg[1:]
        elif arg[:2] in ("-S", "-s", "-u") and (arg[2:] or place + 1 < len(call.args)):
            content = walk.known_file(arg.like(arg[2:]) if arg[2:] else call.args[place + 1])
            for line in content.text.split("\n") if content is not None else ():
                yield arg, line
    if call.stdin is not None and (call.name == "ex" or any(re.match(r"-[A-Za-z]*[eE]", arg) for arg in call.args)):
        if call.stdin.text.strip() == UNKNOWN:
            walk.report("dynamic.script", call.argv)
        for line in call.stdin.text.split("\n"):
            yield make_arg("", taints=call.stdin.taints), line


def _by_pattern(walk: Walk, call: Call) -> None:
    """Follow the commands that the input of ed or m4 holds where its pattern says so."""
    pattern = _RE.m4_runs if call.name == "m4" else _RE.ed_runs
    texts = [call.stdin, *(walk.known_file(arg) or arg.value() for arg in call.args)]
    for text in texts:
        if text is not None and not _too_long(walk, call, text.text):
            for match in pattern.finditer(text.text):
                walk.run_text(Value(match[1], text.taints), unknown(), "-c")


class Console(NamedTuple):
    """How the commands of a program with a prompt are read. In each pattern, group 1 is what is meant."""

    shell: str = "(?!)"
    """A command for the shell."""
    python: str = ""
    """Code in Python."""
    writes: str = ""
    """A file that it writes."""
    loads: str = ""
    """A library that it loads."""
    texts: str = ""
    """Options whose value is a command of the console."""
    files: str = ""
    """Options whose value is a file with such commands."""
    pipes: str = ""
    """Options whose value may be a pipe: `-o '|command'`."""
    operands: str = "99"
    """From which operand on the operands are commands."""
    asks: str = ""
    """Not empty where commands that are not known are asked about."""
    language: str = ""
    """The language that its commands are written in, if it is one of those that are read."""


_CONSOLES = {
    name: Console(**fields)
    for names, fields in cast("dict[str, dict[str, Any]]", read_tables(__file__, "consoles")).items()
    for name in names.split()
}


def _console(walk: Walk, call: Call) -> None:
    if call.name == "sftp":
        follow_ssh_copies(walk, call)
    console = _CONSOLES[call.name]
    for text in _texts(walk, call, console):
        _commands(walk, call, console, text)
    if call.name in ("gdb", "gdb-multiarch") and "--args" in call.args:
        walk.start(call.args[call.args.index(Arg("--args")) + 1 :], None, under="gdb")


def _texts(walk: Walk, call: Call, console: Console) -> Iterator[Value]:
    """Everything that the program reads as commands."""
    if call.stdin is not None:
        yield call.stdin
    texts, files, pipes = console.texts.split(), console.files.split(), console.pipes.split()
    operands = -int(console.operands)
    place = 0
    while place < len(call.args):
        arg = call.args[place]
        place += 1
        name, equals, attached = arg.partition("=")
        option = name if name in (*texts, *files, *pipes) else arg[:2] if arg[:2] in (*texts, *files, *pipes) else ""
        if not option:
            if arg[:1] != "-":
                operands += 1
                if operands > 0:
                    yield walk.known_file(arg) or arg.value()
            continue
        if option != name:
            value = arg.like(arg[2:])
        elif equals:
            value = arg.like(attached)
        else:
            value = call.args[place] if place < len(call.args) else Arg("")
            place += 1
        if option in texts:
            yield value.value()
        elif option in pipes:
            if value[:1] == "|" or option == "--pager":
                walk.run_text(Value(value.lstrip("|"), value.taints), unknown(), "-c")
        elif value not in STDIN_PATHS and (content := walk.known_file(value)) is not None:
            yield content


def _commands(walk: Walk, call: Call, console: Console, text: Value) -> None:
    """Follow what leaves the console in a text for it. Other text is for the rules: most of it is SQL."""
    if len(text.text) > _MAX_TEXT:
        raise Limit(f"more input for {call.name} than is read")
    for match in re.finditer(console.shell, text.text, re.M | re.I):
        command = _unquoted(_group(match))
        with walk.wrapped(call.name):
            walk.run_text(Value(command, text.taints), unknown(), "-c")
    for match in re.finditer(console.python, text.text, re.M) if console.python else ():
        judge_code(walk, call, "python", Value(match[1], text.taints))
    if console.writes:
        for match in re.finditer(console.writes, text.text, re.M | re.I):
            walk.on_write(Arg(_group(match)), ">", unknown())
    if console.loads and re.search(console.loads, text.text, re.M | re.I):
        walk.report("env.inject", call.argv)
    if console.language:
        judge_code(walk, call, console.language, text)
    if text.text.strip() == UNKNOWN and console.asks:
        walk.report("dynamic.script", call.argv)


def _group(match: re.Match[str]) -> str:
    return next((group for group in match.groups() if group is not None), "")


def _unquoted(text: str) -> str:
    text = text.strip().strip(";")
    if text[:2] == "$$":
        return text[2:-2]
    if match := _RE.quoted.fullmatch(text.removeprefix("e").removeprefix("E") if text[1:2] == "'" else text):
        return match[2].replace("''", "'") if match[1] == "'" else match[2]
    return text.rstrip("\"'") if text.count('"') == 1 or text.count("'") == 1 else text
