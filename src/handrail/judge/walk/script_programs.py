"""Find the files that shells, interpreters and plain names of programs run, and follow what is in them."""

import posixpath
import re
import shlex
from collections.abc import Iterable, Sequence
from itertools import chain, pairwise

from ..programs.tables import DATA_PROGRAMS, LANGUAGES, SHELLS, skip_options
from ..values.data_files import Patterns, Words, read_tables
from ..values.disk import INSTALLED, Source, absolute
from ..values.word_values import UNKNOWN, Arg, OtherName, Value
from .builtins import STDIN_PATHS
from .interpreters import read_options
from .script_files import entry, here, judge_code, lookup, matching, names_in, run_shell, run_with_file, run_words
from .walk import Call, Walk

_RE = Patterns(__file__)
_WORDS = Words(__file__)
_TABLES = read_tables(__file__)
ONLY_TEXTS = _WORDS.only_texts
"""Programs that only read, copy or list the files that they are given."""
_RUN_BY = {end: words.split() for ends, words in _TABLES["run by"].items() for end in ends.split()}
_MAX_OPERANDS = 16
_MAX_CONSOLE = 60_000
_MAX_IMPORTS = 24
_MAX_DIRECTORIES = 8


def follow_shell(walk: Walk, call: Call) -> None:
    given = read_options(call.name, call.args)
    for file in given.startup:
        source_file(walk, file, (), None)
    reads_file = given.operands and not given.texts and given.letters.isdisjoint("cs")
    source = _from_disk(walk, given.operands[0]) if reads_file else None
    if source is not None and not source.is_binary:
        run_shell(walk, source, given.operands[1:], call.stdin)


def source_file(walk: Walk, path: str, args: Sequence[Arg], stdin: Value | None) -> bool:
    """`. file`: whether it was found on the disk."""
    found = _from_disk(walk, path)
    if found is None or found.is_binary:
        return False
    run_shell(walk, found, args, stdin, same_shell=True)
    return True


def follow_language(walk: Walk, call: Call) -> None:
    """Other interpreters: the program, what options load, and what it includes by a relative path."""
    language = _language_of(call.name)
    letters = _TABLES["values"].get(language, "")
    start, options = skip_options(call.args, letters, "require import loader file load script env-file")
    operands = list(call.args[start:])
    if call.name in _WORDS.with_commands and operands[:1] and operands[0] in _WORDS.run_words:
        more, _ = skip_options(operands[1:])
        operands = operands[1 + more :]
    loads = _TABLES["loads"].get(language, "").split()
    paths = [value for option, value in options if option in loads and value is not None]
    if {option for option, _ in options} & {"-e", "-E", "--eval", "-p", "--print", "-c", "-r"}:
        for name in (name for arg in call.args for name in _RE.imports.findall(arg)):
            if name[0] in "./" or language != "javascript" or _module_place(walk, language, name) != name:
                paths.append(Arg(name))
    else:
        paths += operands[:1]
    paths += [Arg(f"{folder}/{path}") for option, folder in options if option == "-I" and folder for path in paths[:4]]
    paths += map(Arg, _TABLES["startup"].get(language, "").split())
    for path in paths:
        _follow_program(walk, call, language, _module_place(walk, language, str(path)))
    assign_new(walk, [value for option, value in options if option == "--env-file" and value])
    own = {"--test": ("node-test", operands), "--run": ("npm", [Arg("run"), *operands])}
    for option, value in options:  # node's own test runner, and its `npm run`
        name, args = own.get(option, ("", []))
        if call.name == "node" and (other := walk.programs.follower_of(name)) is not None:
            other(walk, Call(name, args if value is None else [*args, value], None, Arg(name)))


def assign_new(walk: Walk, paths: Iterable[str] = ()) -> None:
    """Set the variables that files hold, as if they were exported: by default those of new files that are called `.env`."""
    for path in paths or (name for name in names_in(walk, ".") if _RE.environment.search(name)):
        source = lookup(walk, path)
        text = source.text if source is not None and (paths or source.is_new) else ""
        for name, setting in _RE.variable.findall(text):
            walk.on_assign(name, Value(setting))


def _module_place(walk: Walk, language: str, name: str) -> str:
    """Where a module lies: one without a path is a package of the project, if this session has written that."""
    place = f"node_modules/{name}"
    found = entry(walk, place) if language == "javascript" and name[:1] not in ("/", ".", "~", "") else None
    return place if found is not None and found.is_new else name


def _follow_program(walk: Walk, call: Call, language: str, path: str) -> None:
    endings = ["", *_TABLES["endings"].get(language, "").split()]
    waiting, done = [path], set[str]()
    while waiting and len(done) < _MAX_IMPORTS:
        place = waiting.pop(0)
        source = next((found for end in endings if (found := lookup(walk, place + end))), None)
        if source is None or source.is_binary or source.path in done:
            continue
        done.add(source.path)
        if source.path.endswith(".json"):
            continue
        judge_code(walk, call, source, language)
        folder = posixpath.dirname(absolute(source.path, here(walk)))
        for name in _RE.imports.findall(source.text):
            if name.startswith(".") or language in ("ruby", "php", "perl", "lua"):
                waiting.append(posixpath.normpath(f"{folder}/{name}"))
            elif (package := _module_place(walk, language, name)) != name:
                waiting.append(package)


def _language_of(name: str) -> str:
    return LANGUAGES.get(name) or LANGUAGES.get(name.rstrip("0123456789.").rstrip("-"), "other")


def follow_console(walk: Walk, call: Call) -> None:
    """psql, gdb, vim and their like: judged once more with what the files that they are given hold."""
    assert walk.sources is not None
    paths = [call.stdin.program] if isinstance(call.stdin, OtherName) else []
    for arg in call.args[:_MAX_OPERANDS]:
        paths += [arg.partition("=")[2]] if arg[:2] == "--" else [arg[2:]] if arg[:1] == "-" else [str(arg)]
    included = [path for arg in call.args for path in _RE.includes.findall(arg)]
    for path in chain(filter(None, paths), included):  # more are included while they are read
        found = entry(walk, path)
        if found is None or found.is_dir or found.size > _MAX_CONSOLE:
            continue
        reads_files = call.name in ("mongo", "mongosh")
        if (
            (known := walk.known_file(path)) is not None and path in paths and not reads_files
        ):  # it was judged with that
            included += _RE.includes.findall(known.text)
            continue
        source = lookup(walk, path)
        if source is not None and not source.is_binary and source.is_whole:
            if len(included) < _MAX_IMPORTS:
                included += [name for line in source.text.split("\n") for name in _RE.includes.findall(line)]
            reads = isinstance(call.stdin, OtherName) and path == call.stdin.program
            reads = reads or path in included or reads_files
            run_with_file(walk, source, call, path, Value(source.text) if reads else None)


def follow_curl(walk: Walk, call: Call) -> None:
    """`curl -K file`: a file of options."""
    _, options = skip_options(call.args, "KoXdHFTuAebwxmEcDrtzC", "config")
    for path in (value for name, value in options if name in ("-K", "--config") and value):
        reads = call.stdin is not None and path in STDIN_PATHS
        source = Source("-", call.stdin.text, is_new=True) if reads and call.stdin else lookup(walk, path)
        lines = _RE.curl_option.findall(source.text) if source is not None else ()
        words = [word for dash, name, value in lines for word in (f"{dash or '--'}{name}", value.strip('"')) if word]
        if source is not None:
            run_words(walk, source, ["curl", *words])


def follow_text_program(walk: Walk, call: Call) -> None:
    """`awk -f file`, `sed -f file`."""
    _, options = skip_options(call.args, "FvfieEoDlL" if "awk" in call.name else "eflE", "file expression exec include")
    options += [("-i", Arg(name)) for arg in call.args for name in _RE.awk_includes.findall(arg)]
    for option, value in options:
        if option in ("-f", "--file", "-E", "--exec", "-i", "--include") and value is not None:
            if option in ("-E", "-i") and "awk" not in call.name:
                continue
            source = _from_disk(walk, value)
            if source is not None and source.is_whole and not source.is_binary:
                run_words(walk, source, [call.name, *(() if "awk" in call.name else ("-e",)), source.text])


def follow_compiler(walk: Walk, call: Call) -> None:
    """What is compiled now will run sooner or later: sources that were written in this session are read."""
    for arg in call.args:
        if _RE.sources.fullmatch(arg) and (source := lookup(walk, arg)) is not None and source.is_new:
            judge_code(walk, call, source, "c")
            for name in re.findall(r"(?m)^\s*#\s*include\s+\"([\w./-]+)\"", source.text)[:_MAX_IMPORTS]:
                header = lookup(walk, posixpath.join(posixpath.dirname(arg), name))
                if header is not None and header.is_new:
                    judge_code(walk, call, header, "c")


def follow_powershell(walk: Walk, call: Call) -> None:
    """`pwsh x.ps1`, `pwsh -File x.ps1`."""
    path = next((arg for arg in call.args if arg.lower().endswith(".ps1")), None)
    if path is not None and " " not in path and (source := _from_disk(walk, path)) is not None:
        run_shell(walk, source)


def follow_path(walk: Walk, call: Call) -> None:
    """`./x`: a script by its first line, a link to or a copy of another program."""
    assert walk.sources is not None
    known = walk.known_file(call.program)
    if known is not None and not isinstance(known, OtherName):
        return  # the command has written it itself, and it was followed
    found = entry(walk, call.program)
    if found is None or found.is_dir:
        return
    real = posixpath.basename(found.path)
    if _bare(real) != _bare(call.name) and walk.judgement.rulebook.knows(real) and "/bin/" in found.path:
        walk.start([Arg(found.path), *call.args], call.stdin)
        return
    source = walk.sources.read(found.path)
    if source is None:
        return
    if source.is_binary:
        _follow_copy(walk, call, found.path, found.size)
        return
    source = source._replace(path=absolute(call.program, here(walk)))
    first, _, _ = source.text.partition("\n")
    if not first.startswith("#!"):
        run_shell(walk, source, call.args, call.stdin)
        return
    _, split, text = first.partition("env -S")
    if split and ('"' in text or "'" in text):  # words with blanks, as for a shell's `-c`
        walk.start([Arg("env"), Arg("-S"), Arg(text.strip()), Arg(source.path), *call.args], call.stdin)
    words = [word for word in first[2:].split() if word not in ("-S", "-i")]
    if words and words[0].endswith("/env"):
        words = [word for word in words[1:] if "=" not in word]
    if words:
        name = posixpath.basename(words[0])
        script = [*map(Arg, words[1:]), Arg(source.path), *call.args]
        if name in SHELLS or _language_of(name) != "other":
            follow(walk, Call(name, script, call.stdin, Arg(name)))
        else:  # `#!/bin/rm -rf`
            walk.start([Arg(name), *script], call.stdin)


def _follow_copy(walk: Walk, call: Call, path: str, size: int) -> None:
    """A program with the same content as one of the system's is that program."""
    sources = walk.sources
    assert sources is not None
    start = b""
    if path.startswith(INSTALLED):
        return
    for name in _TABLES["copied"]["programs"].split():
        for folder in ("/usr/bin", "/bin", "/usr/sbin", "/sbin"):
            other = sources.entry(f"{folder}/{name}")
            if other is None or other.size != size or other.path == path:
                continue
            start = start or sources.start(path, 1 << 16)
            if start == sources.start(other.path, 1 << 16):
                walk.start([Arg(f"{folder}/{name}"), *call.args], call.stdin)
                return
            break


def _bare(name: str) -> str:
    return name.rstrip("0123456789.").rstrip("-")


def _from_disk(walk: Walk, path: str) -> Source | None:
    """A file that the command has not written itself: what it has written is followed already."""
    known = walk.known_file(path)
    return None if known is not None and not isinstance(known, OtherName) else lookup(walk, path)


def follow(walk: Walk, call: Call) -> None:
    """Follow the files that a program runs."""
    if "PYTHONPATH" in walk.state.variables and (customise := walk.programs.follower_of("sitecustomize")) is not None:
        customise(walk, call)
    if _several(walk, call):
        return
    if "/" in call.program:
        follow_path(walk, call)
    elif place := _in_search_path(walk, call.name):
        follow_path(walk, Call(call.name, call.args, call.stdin, Arg(place)))
    if (follower := walk.programs.follower_of(call.name)) is not None:
        follower(walk, call)
    if call.name not in ONLY_TEXTS and call.name not in _WORDS.linters:
        _given_files(walk, call)
    real = [_real(walk, arg) for arg in call.args[:_MAX_OPERANDS]]
    if any(one is not arg for one, arg in zip(real, call.args, strict=False)):
        walk.show_to_rules(Call(call.name, [*real, *call.args[_MAX_OPERANDS:]], call.stdin, call.program))


def _real(walk: Walk, arg: Arg) -> Arg:
    """A path below a link in the work tree, as the place that it leads to."""
    top, slash, rest = arg.partition("/")
    found = entry(walk, top) if slash and top.strip(".~") and top[0] != "-" and UNKNOWN not in top else None
    if found is None or not found.is_dir or found.path == absolute(top, here(walk)):
        return arg
    return arg.like(f"{found.path}/{rest}")


def _given_files(walk: Walk, call: Call) -> None:
    """Code among the arguments, by how the file's name ends: what an option names (`--require x.js`), or follows `run`.

    A program that is not known to take data may run all that it is given: files that were written in this session are read.
    """
    is_unknown = call.name not in DATA_PROGRAMS
    for place, (before, arg) in enumerate(pairwise((Arg(""), *call.args[:_MAX_OPERANDS]))):
        rest = call.args[place + 1 :] if before in _WORDS.run_words else ()
        name, _, value = arg.rpartition("=") if "=" in arg else (before, "", str(arg))
        words = _RUN_BY.get(posixpath.splitext(value)[1].lower(), ())
        is_led = name[:1] == "-" and not _RE.no_code.search(name)
        if not words and not ((is_unknown or is_led) and ("." in value or "/" in value or is_led)):
            continue
        knows = walk.judgement.rulebook.knows(call.name)
        if knows and not is_led and _RE.texts.fullmatch(value):
            continue
        found = entry(walk, value)
        if found is not None and (is_unknown or not knows or _RE.settings.search(name)):
            walk.programs.follow_place(walk, call, value, everything=False)
        if found is None or found.is_dir or not (is_led or name in _WORDS.run_words or (is_unknown and found.is_new)):
            continue
        if run_by_ending(walk, value, rest):
            continue
        if is_unknown and not _RE.prose.fullmatch(value) and (source := lookup(walk, value)) and not source.is_binary:
            judge_code(walk, call, source, "other")


def run_by_ending(walk: Walk, path: str, rest: Sequence[Arg] = ()) -> bool:
    """Follow a file by the program that its ending stands for; false when it stands for none."""
    words = _RUN_BY.get(posixpath.splitext(path)[1].lower(), [])
    follower = walk.programs.follower_of(words[0]) if words else None
    if follower is not None:
        follower(walk, Call(words[0], [*map(Arg, words[1:]), Arg(path), *rest], None, Arg(words[0])))
    return follower is not None


def _several(walk: Walk, call: Call) -> bool:
    """A program or a script with wildcards in its path: each file that it may stand for is followed."""
    words = [call.program, *call.args]
    runs_file = call.name in SHELLS or _language_of(call.name) != "other"
    for place, word in enumerate(words[:_MAX_OPERANDS] if runs_file else words[:1]):
        if _RE.wild.search(word) and word[:1] != "-" and " " not in word:
            found = matching(walk, word)
            for path in found:
                other = [*words[:place], word.like(path), *words[place + 1 :]]
                if walk.written_file(path) is not None:
                    walk.start(other, call.stdin)
                    continue
                follow(walk, Call(call.name if place else posixpath.basename(path), other[1:], call.stdin, other[0]))
            return bool(found)
    return False


def _in_search_path(walk: Walk, name: str) -> str:
    """Where a program is found in the directories that a command has put in front of PATH, or that its runner would."""
    search = walk.state.variables.get("PATH")
    if search is not walk.state.first_path and isinstance(search, Value):
        for directory in search.text.split(":")[:_MAX_DIRECTORIES]:
            if UNKNOWN in directory or directory.startswith(("/usr/", "/bin", "/sbin")):
                break
            found = entry(walk, f"{directory or '.'}/{name}")
            if found is not None and not found.is_dir:
                return f"{directory or '.'}/{name}"
    for place in (f"node_modules/.bin/{name}", f".venv/bin/{name}"):
        if (found := entry(walk, place)) is not None and found.is_new:
            return place
    return ""


def first_file(walk: Walk, names: Iterable[str], folder: str = "") -> Source | None:
    """The first of these files that is there and can be read."""
    cwd = absolute(folder or ".", here(walk))
    places = (name if name[:1] == "/" else f"{cwd}/{name}" for name in names if cwd)
    found = (source for place in places if (source := lookup(walk, place)) is not None)
    return next((source for source in found if source.is_whole and not source.is_binary), None)


def shell_words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return []
