"""Follow shells and interpreters of other languages: what they read is a program."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

from ..languages import read as read_code
from ..languages.host import Host, from_data_url
from ..programs.tables import LANGUAGES, SHELLS, only_describes_itself, raised, read_program, skip_options
from ..values.data_files import Patterns, Words
from ..values.taints import ENDLESS, NETWORK, NO_TAINTS, Taint, taints_of
from ..values.word_values import EMPTY, UNKNOWN, Arg, Computed, Either, OtherName, Value, unknown
from .builtins import STDIN_PATHS
from .state import Held
from .walk import Call, Walk

_WORDS = Words(__file__)
_RE = Patterns(__file__)
_PROMPT_OPTIONS = {"python": "i", "perl": "d", "javascript": "i", "php": "a"}
"""Options with which interpreters take more code from their input, after what they were given."""
_ONLY_CHECK = SHELLS - frozenset("nu xonsh elvish powershell pwsh".split())
_POWERSHELL_VALUES = ("ex", "ep", "w", "v", "in", "o", "configurationn", "settings")


def _shell(walk: Walk, call: Call) -> Value | None:
    with Held(walk, last_in_shell=walk.last_in_shell or call.name in _WORDS.last_in_shell):
        return _run_shell(walk, call, read_options(call.name, call.args))


def _run_shell(walk: Walk, call: Call, given: ShellOptions) -> Value | None:
    only_checks = "n" in given.letters and "i" not in given.letters and call.name in _ONLY_CHECK
    if only_checks or not given.words.isdisjoint(("--help", "--version")):
        return EMPTY
    for file in given.startup:
        _run_file(walk, call, file, ())
    for text in given.texts[:-1]:
        walk.run_text(text.value(), None, "-c")
    operands = given.operands
    script = given.texts[-1] if given.texts else None
    if script is None and "c" in given.letters:
        if not operands:
            if {"xargs", "parallel", "find"} & set(walk.under):
                walk.report("dynamic.script", call.argv)
            return unknown()
        script, operands = operands[0], operands[1:]
    if script is not None:
        return _with_arguments(walk, operands, script.value(), call.stdin)
    if operands == [UNKNOWN] and raised(walk.under):  # xargs with nothing to read
        walk.report("privilege.root_shell", [Arg(walk.under[0]), *call.argv])
    if operands and "s" not in given.letters:
        return _run_file(walk, call, operands[0], operands[1:])
    if not operands and raised(walk.under):
        walk.report("privilege.root_shell", [Arg(walk.under[0]), *call.argv])
    return _run_input(walk, call.stdin, operands)


def _run_input(walk: Walk, stdin: Value | None, args: Sequence[Arg]) -> Value:
    if isinstance(stdin, OtherName):
        with walk.subshell():
            if walk.programs.source_file(walk, stdin.program, args, None):
                return unknown()
    return unknown() if stdin is None else walk.run_text(stdin, None, "stdin")


def _powershell(walk: Walk, call: Call) -> Value | None:
    """`-Command text` in all its abbreviations; an encoded text cannot be read."""
    place = 0
    while place < len(call.args):
        arg = call.args[place]
        option = arg.lower().lstrip("-/")
        if arg[:1] not in ("-", "/") or not option:
            break
        if "command".startswith(option):
            rest = call.args[place + 1 :]
            return walk.run_text(Value(" ".join(rest), taints_of(rest)), call.stdin, "-c")
        if option in ("e", "ec") or (len(option) > 2 and "encodedcommand".startswith(option)):
            walk.report("dynamic.script", call.argv)
            return unknown()
        if "file".startswith(option):
            return None
        place += 2 if option.startswith(_POWERSHELL_VALUES) else 1
    rest = call.args[place:]
    if rest and (call.name == "powershell" or " " in rest[0]):
        return walk.run_text(Value(" ".join(rest), taints_of(rest)), call.stdin, "-c")
    if not rest and call.stdin is not None:
        return walk.run_text(call.stdin, None, "stdin")
    return None


def _with_arguments(walk: Walk, args: Sequence[Arg], script: Value, stdin: Value | None, how: str = "-c") -> Value:
    """Run a script with `$0` and what follows it."""
    saved, name = walk.state.arguments, walk.state.settings["program"]
    walk.state.name_program(args[0].value() if args else None)
    walk.state.arguments = tuple(arg.value() for arg in args[1:]) or None
    try:
        return walk.run_text(script, stdin, how)
    finally:
        walk.state.arguments = saved
        walk.state.name_program(name)


def _run_file(walk: Walk, call: Call, path: Arg, args: Sequence[Arg]) -> Value:
    """`bash script`: what the file holds, if the command itself has made it."""
    if path in STDIN_PATHS:
        return walk.run_text(call.stdin or EMPTY, None, "stdin")
    content = walk.known_file(path)
    if content is None:
        if path.startswith(("/dev/tcp/", "/dev/udp/")) or _RE.url.match(path):
            walk.report("rce.download_to_shell", call.argv)
        _unread(walk, call, path)
        return unknown()
    if isinstance(content, OtherName):
        return _run_file(walk, call, path.like(content.program), args) if content.program != path else unknown()
    out = _with_arguments(walk, [path, *args], content, call.stdin, "source")
    now = walk.known_file(path)
    # It may have changed the rest of itself, which is read only now.
    if now is not None and now is not content and walk.handed_over(content.text) is None:
        return _with_arguments(walk, [path, *args], now, call.stdin, "source")
    return out


def _unread(walk: Walk, call: Call, path: Arg) -> None:
    """Scripts that a list names, and that cannot be looked up."""
    listed = UNKNOWN in path and Taint.WIDE in path.taints
    if (walk.sources is None or path == UNKNOWN) and listed and _WORDS.only_checks.isdisjoint(call.args):
        walk.report("dynamic.script", call.argv)


def _language(walk: Walk, call: Call) -> Value | None:
    language = LANGUAGES.get(call.name) or LANGUAGES[call.name.rstrip("0123456789.").rstrip("-")]
    codes, module, operands = read_program(language, call.args)
    is_led = call.name in _WORDS.with_subcommands and operands[:1] and operands[0] in _WORDS.subcommands
    codes = [*codes, *(read_program(language, operands[1:]).codes if is_led else ())]
    for code in (*codes, *(map(Arg, filter(None, map(from_data_url, call.args))) if "data:" in call.text else ())):
        judge_code(walk, call, language, code.value())
    if call.name in _WORDS.with_more_code:
        _more_code(walk, call, codes)
    if call.stdin is not None and (codes or module is not None) and _reads_more(language, call.args, codes):
        judge_code(walk, call, language, call.stdin)
    if module is not None:
        return _run_module(walk, call, [module, *operands] if module else [])
    if codes:
        return unknown(ENDLESS) if any(map(_prints_forever, codes)) else None
    start = len(call.args) - len(operands)
    if is_led:
        more, _ = skip_options(operands[1:])
        operands = operands[1 + more :]
    if not operands or operands[0] in STDIN_PATHS:
        if isinstance(call.stdin, OtherName) and walk.sources is not None:
            file = Arg(call.stdin.program)
            return walk.run([call.program, *call.args[:start], file, *operands[1:]], None, functions=False)
        if call.stdin is not None:
            judge_code(walk, call, language, call.stdin)
        elif raised(walk.under) and not only_describes_itself(call.args):
            walk.report("privilege.root_shell", [Arg(walk.under[0]), *call.argv])
        return None
    if operands[0].startswith("(") and language == "scheme":
        judge_code(walk, call, language, operands[0].value())
        return None
    _run_code_file(walk, call, language, operands)
    return None


def _prints_forever(code: str) -> bool:
    return _RE.endless.search(code) is not None and _RE.prints.search(code) is not None and not _RE.leaves.search(code)


def _reads_more(language: str, args: Sequence[Arg], codes: Sequence[Arg]) -> bool:
    """Whether it reads code from its input besides what it was given: with a prompt, or because the code does so."""
    letter = _PROMPT_OPTIONS.get(language)
    if letter and any(arg[:1] == "-" and arg[1:2] != "-" and letter in arg[:5] for arg in args):
        return True
    return "pdb" in args or any(_RE.reads_code.search(code) for code in codes)


def _run_code_file(walk: Walk, call: Call, language: str, operands: Sequence[Arg]) -> None:
    """`python file`: what the file holds, if the command itself has made it; else what its arguments say."""
    path = operands[0]
    content = walk.known_file(path)
    if walk.sources is None:  # it cannot be read
        walk.programs.follow_unlisted(
            walk, Call(path.rpartition("/")[2], operands[1:], call.stdin, path, text=call.text)
        )
    if content is None:
        if _RE.url.match(path):
            walk.report("rce.run_url", call.argv)
        _unread(walk, call, path)
    elif not isinstance(content, OtherName):
        judge_code(walk, call, language, content)


def _more_code(walk: Walk, call: Call, codes: Sequence[Arg]) -> None:
    """Code in places of their own: commands in IPython, and more than a module's name after perl's `-M`."""
    if call.name == "ruby" and "-run" in call.args and codes:  # its own rm, cp, mv as programs
        start = call.args.index(Arg("--")) + 1 if "--" in call.args else len(call.args)
        walk.start([codes[0], *call.args[start:]], None, under="ruby")
        return
    for arg in call.args if call.name == "perl" else ():
        if re.match(r"-[Mm].*[;(]", arg):
            judge_code(walk, call, "perl", Value(f"use {arg[2:]}", arg.taints))
    typed = [Arg(call.stdin.text)] if call.stdin is not None else []
    for code in (*codes, *typed) if call.name != "perl" else ():
        for match in _RE.magics.finditer(code):  # `!command` and `%sx command` of IPython
            walk.run_text(Value(match[1] or match[3], code.taints), None, "-c")


def _run_module(walk: Walk, call: Call, argv: list[Arg]) -> Value | None:
    """`python -m pip ...`: the module is a program with the same arguments."""
    if argv[:1] == ["timeit"]:
        start, options = skip_options(argv[1:], "nrsu", "number repeat setup unit")
        lines = [*(value for option, value in options if option in ("-s", "--setup") and value), *argv[1 + start :]]
        judge_code(walk, call, "python", Value("\n".join(lines), taints_of(lines)))
        return None
    if call.stdin is not None and argv and argv[0] in _WORDS.python_prompts:
        judge_code(walk, call, "python", call.stdin)
    if argv[:1] == ["IPython"]:
        return walk.start([Arg("ipython"), *argv[1:]], call.stdin)
    if argv[:1] == ["pty"] and len(argv) > 1:
        return walk.run(argv[1:], call.stdin, functions=False, builtins=False)
    if argv[:1] == ["pdb"]:
        for option, value in skip_options(argv[1:], "cm", "command")[1]:
            if option in ("-c", "--command") and value is not None:
                judge_code(walk, call, "python", Value(value.lstrip("! "), value.taints))
    if not argv or not walk.judgement.rulebook.knows(argv[0]):
        if argv and UNKNOWN not in argv[0]:  # a program about which nothing is known
            walk.show_to_rules(Call(str(argv[0]), argv[1:], call.stdin, argv[0]))
        return None
    with walk.wrapped(call.name), walk.nested():
        return walk.start(argv, call.stdin)


def _compiler(walk: Walk, call: Call) -> None:
    """Code in the command itself that is compiled will be run sooner or later."""
    for place, arg in enumerate(call.args):
        if arg == "-wrapper" and place + 1 < len(call.args):
            walk.run([Arg(word) for word in call.args[place + 1].split(",")], None, functions=False)
        content = call.stdin if arg == "-" else walk.known_file(arg)
        if content is not None and content.text.strip() != UNKNOWN:
            judge_code(walk, call, "c", content)


def program_arguments(language: str, call: Call) -> list[str] | None:
    """What a program in this language is started with, its own name first; None when that is not known."""
    if LANGUAGES.get(call.name.rstrip("0123456789.")) != language:
        return None
    program = read_program(language, call.args)
    if program.codes or program.module is not None:
        return ["-c", *map(str, program.rest)]
    return [str(arg) for arg in program.rest] or None


def judge_code(walk: Walk, call: Call, language: str, code: Value) -> None:
    """Judge a program in another language."""
    if isinstance(code, Either):
        for option in code.options:
            if option is not None:
                judge_code(walk, call, language, option)
        return
    if code.text.strip() == UNKNOWN:
        if language == "other" and Taint.NETWORK not in code.taints:  # numbers for dc, points for gnuplot
            return
        walk.report("rce.download_to_shell" if Taint.NETWORK in code.taints else "dynamic.script", call.argv)
        return
    host = make_host(walk, call, language, walk.judgement.project, text=code.text)
    read_code(host, code.text, strings=True)
    walk.judgement.add(host.matches, call.argv, walk.span(call.argv))


def make_host(
    walk: Walk,
    call: Call,
    language: str,
    project: str,
    as_commands: Callable[[bool], AbstractContextManager[object]] = nullcontext,
    *,
    text: str = "",
) -> Host:
    """What a reader of another language shows its findings to. `as_commands(starts)` is around each command that is run.

    `text` is the program's: what it writes may hold its strings.
    """

    def shell(text: Value, stdin: Value | None) -> None:
        with walk.wrapped(call.name), as_commands(True):
            walk.run_text(text, stdin, language)

    def argv(args: Sequence[Arg], stdin: Value | None, *, starts: bool) -> None:
        with walk.wrapped(call.name), walk.nested(), as_commands(starts):
            walk.start(args, stdin)

    return Host(
        language,
        shell,
        argv,
        lambda name: walk.programs.known(name).follow is not None,
        lambda path, fetched: walk.state.write(walk.path(path), Computed(text, NETWORK if fetched else NO_TAINTS)),
        lambda name, value: walk.on_assign(name, Value(value)),
        walk.cwd,
        project,
        program_arguments(language, call),
        walk.variables.inherited,
    )


class ShellOptions(NamedTuple):
    """What a shell was started with."""

    letters: frozenset[str]
    """Single-letter options, whether a minus or a plus came before them."""
    words: frozenset[str]
    """Long options."""
    startup: list[Arg]
    """Files that it reads first."""
    texts: list[Arg]
    """Scripts that are given as values of options."""
    operands: Sequence[Arg]


def read_options(name: str, args: Sequence[Arg]) -> ShellOptions:
    letters: set[str] = set()
    words: set[str] = set()
    startup: list[Arg] = []
    texts: list[Arg] = []
    place = 0
    while place < len(args) and args[place][:1] in ("-", "+") and args[place] != "+":
        arg = args[place]
        place += 1
        if arg in ("-", "--"):
            break
        if arg.startswith("--"):
            word, equals, value = arg.partition("=")
            words.add(word)
            given = arg.like(value) if equals else None
            if not equals and word in _WORDS.long_with_value:
                given = args[place] if place < len(args) else None
                place += 1
            if given is not None:
                (texts if word in _WORDS.commands else startup).append(given)
        elif name == "fish" and arg[:2] in _WORDS.fish:
            texts.append(arg.like(arg[2:]) if arg[2:] else args[place] if place < len(args) else Arg(""))
            place += not arg[2:]
        else:
            place += _cluster(name, arg, letters)
    return ShellOptions(frozenset(letters), frozenset(words), startup, texts, args[place:])


def _cluster(name: str, arg: Arg, letters: set[str]) -> int:
    """Take the letters of one argument; returns how many arguments after it are their values."""
    values = 0
    for position, letter in enumerate(arg[1:], 2):
        if arg[0] == "+" and letter == "n":
            letters.discard(letter)  # it runs what it reads again
        else:
            letters.add(letter)
        if letter in "oO":
            if name in _WORDS.attached and arg[position:]:
                return values
            values += 1
    return values
