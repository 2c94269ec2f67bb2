"""What is known about single programs, as the walk asks for it: it is given this module as its `Programs`."""

import functools
import re
from collections.abc import Callable, Container, Iterable
from fnmatch import translate
from importlib import import_module
from itertools import pairwise, zip_longest
from typing import Any

from ..grammar.syntax import DoubleQuoted, Parameter
from ..programs import tables
from ..programs.tables import CODE_FILES, DATA_PROGRAMS, LANGUAGES, SHELLS, TEXT_OPTIONS, WRAPPERS, option_value
from ..rules import Rulebook
from ..rules.command import canonical
from ..rules.targets import READERS, WRITERS
from ..values.data_files import Patterns, Words, read_tables
from ..values.taints import Taint
from ..values.word_values import EMPTY, UNKNOWN, Arg, Value, unknown
from . import environment_variables, output_provenance, script_programs, settings_files, text_emulation
from .files_made import files_made, output_files
from .interpreters import judge_code
from .script_files import lookup, own_files
from .walk import Call, Known, Walk

_GROUPS: dict[str, Iterable[str]] = {"$shells": SHELLS, "$languages": LANGUAGES, "$wrappers": WRAPPERS}
_GROUPS |= {"$containers": tables.CONTAINERS, "$remote": tables.REMOTE, "$text-options": TEXT_OPTIONS}
TABLES = {
    section: {
        one: line for line, names in lines.items() for name in names.split() for one in _GROUPS.get(name, (name,))
    }
    for section, lines in read_tables(__file__).items()
    if section not in ("words", "patterns")
}
"""By section of `program_handlers.txt` and program: the function that knows about it, as `module.function`."""
_MAX_CANDIDATES = 8
_MAX_NAME = 64
_MIN_KNOWN = 3
_MIN_OPTION = 3
_OFTEN = ("rm", "sh", "bash", "dd", "find", "curl", "chmod", "cat")
_WORDS = Words(__file__)
_RE = Patterns(__file__)
_MAX_ARGUMENT = 4096
_MAX_CODES = 16
_MAX_INPUT = 20_000
_AWAY = (name for name, container in tables.CONTAINERS.items() if container.remote or not container.subcommands)
_PASS_OPTIONS_ON = frozenset((*WRAPPERS, *SHELLS, *LANGUAGES, *_AWAY, *tables.REMOTE)) | _WORDS.tell
"""Programs whose options may be those of another command line, or a text that they print."""
_LISTED = TEXT_OPTIONS.keys() | CODE_FILES.keys()
follow_variable = environment_variables.follow_variable
assign_new = script_programs.assign_new
source_file = script_programs.source_file
follow_files = script_programs.follow
follow_place = settings_files.follow_place
judge_settings = settings_files.judge_settings


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
"""How to follow a program to the files on the disk that it runs."""


@functools.lru_cache(4096)
def known(name: str) -> Known:
    """What is known about a program by its name."""
    follow = _lookup("handlers", SHELLS | LANGUAGES.keys(), name)
    return Known(_lookup("builtins", (), name), follow, _lookup("makers", (), name), _lookup("changers", (), name))


def note_effects(walk: Walk, call: Call, known: Known) -> None:
    """What it does besides printing: files that it runs or writes, shells that it opens."""
    has_settings = known.builtin is None and call.name not in script_programs.ONLY_TEXTS
    files, reads = walk.state.files, call.stdin is not None
    if walk.sources is not None or (
        (files or reads) and ((files and has_settings) or follower_of(call.name) is not None)
    ):
        with own_files(walk):
            script_programs.follow(walk, call)
            if has_settings:
                settings_files.follow_settings(walk, call)
    followed = known.follow is not None
    if (
        walk.under
        and call.stdin is None
        and tables.opens_root_shell(walk.under, call.name, call.args, followed=followed)
    ):
        walk.report("privilege.root_shell", call.argv)
    if call.args:
        _follow_options(walk, call)
        if "/" in call.text or "~" in call.text:
            for target in output_files(call):
                walk.on_write(target, "-o", unknown())
    if walk.state.files or known.changer is not None or known.maker is not None:
        files_made(walk, call, known)


def _follow_options(walk: Walk, call: Call) -> None:
    """Run the values of options that are commands: those that a table lists for the program, and those whose names say so."""
    args, name, text = call.args, call.name, call.text
    pairs = list(zip_longest(args, args[1:])) if "-" in text or "=" in text or ".so" in text or name in _LISTED else ()
    for option in TEXT_OPTIONS[name].split() if name in TEXT_OPTIONS else ():
        for arg, following in pairs:
            if value := option_value(option, arg, following):  # a filter reads what it is given, whatever that is
                _run_value(walk, call, option, value, stdin=unknown() if option == "--filter" else None)
    for option in CODE_FILES[name].split() if name in CODE_FILES else ():
        for arg, following in pairs:
            value = arg.like(arg[len(option) :].lstrip("=:")) if arg.startswith(option) and arg != option else None
            _load_file(walk, call, option_value(option, arg, following) or value)
    if name in _PASS_OPTIONS_ON or name.rstrip("0123456789.") in LANGUAGES:
        return
    for arg, following in pairs:
        value = _named_command(arg, following) if "=" in arg or (arg[:1] == "-" and len(arg) > _MIN_OPTION) else None
        if value and _runs_something(walk, value):
            _run_value(walk, call, arg, value)
        elif arg[-3:] == ".so":
            _load_file(walk, call, arg.like(arg.rpartition("=")[2]))
    if (walk.state.files or call.stdin is not None) and name not in READERS and name not in WRITERS:
        _code_in_files(walk, call)


def _named_command(arg: Arg, following: Arg | None) -> Arg | None:
    """The value of an option or setting whose name says that it is a command."""
    option, equals, text = arg.partition("=")
    if equals:
        match = _RE.holds_command.fullmatch(arg)
        value = arg.like(match[2].replace(";", " ") if arg[:2] == "-D" else match[2]) if match else None
    else:
        value = following if arg[:1] == "-" and _RE.before_command.fullmatch(arg) else None
    if value is None and arg[:2] == "--" and not _RE.about_texts.search(option):
        given = arg.like(text) if equals else following
        value = given if given and _RE.destroys.match(given) else None
    return value and value.like(_RE.leads_in.sub("", value))


def _code_in_files(walk: Walk, call: Call) -> None:
    """What it reads from a process substitution or its input, if an argument says so, may be code, whatever the language."""
    for arg in call.args if walk.state.files else ():
        path = _RE.in_option.sub("", arg)
        made = walk.known_file(path) if "/dev/fd/" in path else None
        if made is not None and made.known:
            judge_code(walk, call, "other", made)
    stdin = call.stdin
    if stdin is not None and not _WORDS.input.isdisjoint(call.args) and _RE.calls_something.search(stdin.text):
        judge_code(walk, call, "other", stdin)


def _load_file(walk: Walk, call: Call, path: Arg | None) -> None:
    """A file that the program runs or loads: one that lies where everybody writes is foreign, unless it can be read."""
    path = path and path.like(re.sub(r"^\w+:", "", path))
    if path in _WORDS.input and call.stdin is not None:
        judge_code(walk, call, "other", Value(_RE.bare_path.sub(r'="\1"', call.stdin.text), call.stdin.taints))
    if not path or path[:1] != "/" or not walk.is_foreign(path):
        return
    if walk.sources is None or follower_of(call.name) is None or lookup(walk, path) is None:
        walk.report("env.inject", call.argv)


def _runs_something(walk: Walk, value: Arg) -> bool:
    first = value.split(None, 1)[0] if value.strip() else ""
    return _is_command(first) or walk.judgement.rulebook.knows(first) or walk.is_foreign(first)


def _run_value(walk: Walk, call: Call, option: str, value: Arg, *, stdin: Value | None = None) -> None:
    if value in SHELLS and not _RE.names_shell.search(option):
        walk.report("dynamic.script", call.argv)  # it reads what it is given as a program
    text = f"{value} {UNKNOWN}" if value.split(None, 1)[0] in _WORDS.destroy else str(value)
    with walk.wrapped(call.name):
        walk.run_helper(Value(text, value.taints, value.word if text == value else None), "-c", stdin)


def output(walk: Walk, call: Call) -> Value:
    """What it prints, if anything reads that: computed where the input is known, else unknown with its provenance."""
    if not walk.readers and call.name not in _WORDS.copy_input and walk.state.settings.get("&1") is None:
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
    if call.name in _WORDS.copy_input:
        appends = any(re.match(r"-[a-z]*a|--a", arg) for arg in call.args)
        for arg in call.args:
            if arg[:1] != "-":
                walk.emit(out, [(">>" if appends else ">", arg, True)])
    return out


def follow_unlisted(walk: Walk, call: Call) -> None:
    """Judge what a program that no table lists would run: its arguments may hold a command line, after `--`, `exec` or `-c`."""
    args, is_data = call.args, call.name in DATA_PROGRAMS or canonical(call.name) in DATA_PROGRAMS
    if call.name in ("echo", "printf"):
        return
    may_take_code = call.name not in READERS and call.name not in _PASS_OPTIONS_ON
    reads_code = not is_data or not _WORDS.prompts.isdisjoint(args)
    reads_code = reads_code or (may_take_code and not _WORDS.before_code.isdisjoint(args))
    if not (args or call.stdin is not None) or not (reads_code or "--" in call.text):
        return
    after_word, is_unknown = False, not is_data and not walk.judgement.rulebook.knows(call.name)
    codes = [] if not reads_code else _codes(call, is_unknown=is_unknown)
    for code in codes[:_MAX_CODES]:
        judge_code(walk, call, "other", code)
    if len(codes) > _MAX_CODES:
        walk.report("limit.exceeded", call.argv)
    for place, arg in enumerate(args):
        before = args[place - 1] if place else ""
        if is_data and before[:2] != "--" and arg[:2] != "--":  # words and texts, but for options that say otherwise
            continue
        if before in _WORDS.before_text:
            continue
        led = (
            after_word
            or before in _WORDS.just_before_command
            or (before[:1] == "-" and _RE.before_command.fullmatch(before) is not None)
            or ((is_unknown or arg in _WORDS.destroy) and args[place + 1 : place + 2] and args[place + 1][:1] == "-")
        )
        if led and _is_command(arg):
            walk.start(args[place:], call.stdin, under=call.name)
            return
        if " " in arg and len(arg) < _MAX_ARGUMENT:
            setting = _RE.setting.fullmatch(arg)
            is_line = is_unknown and _RE.command_line.match(arg) and not _RE.sentence.search(arg)
            led = led or bool(is_line and _WORDS.notes.isdisjoint((call.name, *args[:place])))
            text = setting[1] if setting else arg.lstrip("!|:+ ") if led or _RE.marked.match(arg) else ""
            calls = (match for match in _RE.calls.finditer(arg) if not _RE.prose.search(arg, 0, match.start()))
            texts = [text, *("".join(filter(None, match.groups())) for match in calls)]
            for found in texts:
                words = found.split(None, 1)
                if len(words) > 1 and _is_command(words[0]):
                    word = arg.word if found == arg else None
                    walk.start_text(Value(found, arg.taints, word), call.stdin, under=call.name)
        after_word = after_word or arg in _WORDS.before_command


def _codes(call: Call, *, is_unknown: bool) -> list[Value]:
    """What may be code in a language that is not known: after `-e`, in parentheses, or the input of a prompt.

    Of a program about which nothing is known, each argument and its input, if they call something as code does.
    """
    found: list[Value] = []
    stdin = call.stdin
    if stdin is not None and (
        not _WORDS.prompts.isdisjoint(call.args)
        or (is_unknown and len(stdin.text) < _MAX_INPUT and _RE.calls_something.search(stdin.text))
    ):
        found.append(stdin)
    for before, arg in pairwise((Arg(""), *call.args)):
        glued = _RE.glued_code.fullmatch(arg) if arg[:2] == "--" else None
        code = arg.like(glued[1]) if glued else arg
        leads = glued or before in _WORDS.before_code or arg[:1] == "("
        pattern = _RE.is_code if leads else _RE.calls_something
        if (leads or (is_unknown and before not in _WORDS.before_text)) and pattern.search(code):
            found.append(code.value())
    return found


def _is_command(word: str | Arg) -> bool:
    name = word.rsplit("/", 1)[-1]
    return name in SHELLS or name in _WORDS.commands or name.startswith("mkfs.")


def possible_names(name: Arg, rulebook: Rulebook) -> list[str] | None:
    """The programs that it may be; the name itself when none of them matters; None when it may be anything."""
    base = name.rsplit("/", 1)[-1]
    if not name or len(base) > _MAX_NAME:
        return [str(name)] if name and UNKNOWN not in name else None
    if UNKNOWN in name and name.partition(UNKNOWN)[0] in _OFTEN:
        return None  # what is unknown may hold a blank
    if UNKNOWN not in base:
        if not re.search(r"[*?\[]", base):
            return [base]
        found = _matching(base, _names(rulebook))
        return None if len(found) > _MAX_CANDIDATES else found or [base]
    if base == UNKNOWN:
        return [base] if name == UNKNOWN and _is_tool(name) else None
    if len(base.replace(UNKNOWN, "")) < _MIN_KNOWN:
        return None
    return None if _matching(base.replace(UNKNOWN, "*"), _names(rulebook)) else [base]


def _is_tool(name: Arg) -> bool:
    """`$CC`, `"$EDITOR"`, `${PYTHON:-..}`: variables that hold a program by convention."""
    if name.word is None or len(name.word.parts) != 1:
        return False
    part = name.word.parts[0]
    if isinstance(part, DoubleQuoted) and len(part.parts) == 1:
        part = part.parts[0]
    return isinstance(part, Parameter) and part.name in _WORDS.tools


def _matching(pattern: str, names: tuple[str, ...]) -> list[str]:
    matches = re.compile(translate(pattern)).match
    return [name for name in names if matches(name)]


@functools.lru_cache(8)
def _names(rulebook: Rulebook) -> tuple[str, ...]:
    every = {*rulebook.names(), *WRAPPERS, *SHELLS, *LANGUAGES, *tables.CONTAINERS, *tables.REMOTE, *_WORDS.run_others}
    return (*_OFTEN, *sorted(every.difference(_OFTEN)))
