"""Judge the settings that a program reads by itself: commands and code that files of this session name.

A tool looks for files whose names say that they are its own (`.mocharc.json`, `Doxyfile`), or in a place that a variable or an
option names. What the project has had before is not looked at: only files that were written in this session are.
"""

import itertools
import posixpath
import re
from collections.abc import Iterator, Sequence

from ..grammar.sql import is_dangerous
from ..values.data_files import Patterns, Words, read_tables
from ..values.disk import Source, absolute
from ..values.word_values import UNKNOWN, Arg, Value, unknown
from .script_files import entry, followed, here, judge_code, lookup, names_in
from .script_programs import run_by_ending
from .walk import Call, Walk

_RE = Patterns(__file__)
_WORDS = Words(__file__)
_OTHERS = {
    program: names for programs, names in read_tables(__file__)["other names"].items() for program in programs.split()
}
"""By program: files and folders that it reads whose names do not say so."""
_MAX_FILES = 40
_MAX_FOLDERS = 12
_MAX_LINES = 400
_MAX_NAMED = 60
_MAX_PARTS = 6
_MAX_TEXT = 30_000
_MIN_NAME = 3
_SAME_START = 4


def follow_settings(walk: Walk, call: Call) -> None:
    """The files of the working directory that by their names belong to this program."""
    cwd = absolute(".", here(walk))
    key = ("settings", call.name, cwd)
    if not cwd or walk.sources is None or key in walk.sources.followed:
        return
    walk.sources.followed.add(key)
    others = _OTHERS.get(call.name, "").split()
    for name in names_in(walk, "."):
        if name in _WORDS.shared:
            _judge_sections(walk, call, name)
        elif name in others or (_RE.settings.search(name) and _is_of(name, call.name)):
            _judge_new(walk, call, name, as_code=False)
    for name in others:
        if "/" in name:
            follow_place(walk, call, name)


def _judge_sections(walk: Walk, call: Call, path: str) -> None:
    """The part of a file of settings for many programs that is about this one: `"jest": {..}`, `[tool.mypy]`."""
    found = entry(walk, path)
    source = lookup(walk, path) if found is None or found.is_new else None
    for match in _RE.part.finditer(source.text) if source is not None and len(source.text) <= _MAX_TEXT else ():
        if source is not None and _is_of((match[1] or match[3]).removeprefix("tool."), call.name):
            judge_settings(walk, call, source._replace(text=match[2] or match[4]))


def follow_place(walk: Walk, call: Call, text: str, *, everything: bool = True) -> None:
    """What a variable or an argument names: files, the modules of Python among them, and folders with what is below them.

    `everything`: not only settings and scripts. The working directory itself is no such place.
    """
    for part in re.split(r"[:=,\s]+", text)[:_MAX_FOLDERS] if UNKNOWN not in text else ():
        for path in (part, f"{part}.py"):
            found = entry(walk, path) if part.strip("./") else None
            if found is None or f"{here(walk)}/".startswith(f"{found.path}/"):
                continue
            for one in _below(walk, path) if found.is_dir else (path,):
                if everything or not found.is_dir or "." not in posixpath.basename(one) or _RE.settings.search(one):
                    _judge_new(walk, call, one)


def judge_settings(walk: Walk, call: Call, source: Source) -> None:
    """Judge a text in which values may be command lines, and the files that it names."""
    key = ("values", source.path, source.text)
    assert walk.sources is not None
    if key in walk.sources.followed or source.is_binary or len(source.text) > _MAX_TEXT:
        return
    walk.sources.followed.add(key)
    if any(map(is_dangerous, _RE.statement.findall(source.text))):
        walk.report("sql.destructive", call.argv)
    judge_code(walk, call, source, "other")
    with followed(walk, source, is_code=True) as inside:
        for line in _lines(inside, source.text):
            inside.run_text(Value(line), None, "settings")
        for words in _lists(inside, source.text):
            inside.start([Arg(word) for word in words], None)
        for words in _RE.removes.findall(source.text)[:_MAX_NAMED]:
            inside.start([Arg("rm"), Arg("-rf"), *map(Arg, filter(None, words))], None)
        for path in _RE.writes.findall(source.text)[:_MAX_NAMED]:
            if not inside.classes(path).isdisjoint(("startup", "own", "hook", "device")):
                inside.on_write(Arg(path), ">", unknown())
    folder = posixpath.dirname(absolute(source.path, here(walk)))
    loads = _RE.loads.search(source.text) is not None
    for name in list(dict.fromkeys(_RE.names_file.findall(source.text)))[:_MAX_NAMED]:
        for path in dict.fromkeys((f"{folder}/{name}", f"{folder}/{name}.py", absolute(name, here(walk)))):
            if path != source.path and (loads or not ((found := entry(walk, path)) and found.is_dir)):
                _judge_new(walk, call, path)


def _is_of(file: str, program: str) -> bool:
    """Whether a file's name says that it belongs to a program: `.mocharc.yml`, `Doxyfile` of doxygen, `x.gyp` of node-gyp."""
    if file in _WORDS.read_elsewhere:
        return False
    own, name = _RE.parts.findall(file.lower()), _RE.parts.findall(program.lower())
    whole, letters = "".join(own), "".join(name).rstrip("0123456789")
    if own[:1] == name:
        return True
    is_alike = len(letters) > _SAME_START and whole.startswith(letters[:_SAME_START])
    is_alike = is_alike or (letters in whole and len(letters) >= _MIN_NAME)
    return is_alike or not set(own).isdisjoint(name[1:])


def _below(walk: Walk, folder: str) -> Iterator[str]:
    waiting, seen = [folder], 0
    while waiting and seen < _MAX_FILES and walk.sources is not None:
        place = waiting.pop(0)
        for name in names_in(walk, place):
            seen += 1
            found = entry(walk, path := f"{place}/{name}")
            if found is not None and found.is_dir and len(waiting) < _MAX_FOLDERS:
                waiting.append(path)
            elif found is not None:
                yield path


def _judge_new(walk: Walk, call: Call, path: str, *, as_code: bool = True) -> None:
    """Judge a file of this session; unless `as_code`, its strings may be command lines whatever its language is."""
    found = entry(walk, path)
    if found is not None and found.is_dir and path.strip("./"):
        follow_place(walk, call, path)
    if walk.known_file(path) is None and (found is None or found.is_dir or not found.is_new):
        return
    source = lookup(walk, path, runs=False)
    if source is not None and not as_code and _RE.compiled.search(path):
        judge_code(walk, call, source, "c")
    if source is None or source.is_binary or _RE.prose.fullmatch(path):
        return
    if source.text.startswith("#!") and "/" in path and "make" not in source.text.partition("\n")[0]:
        walk.programs.follow_files(walk, Call(posixpath.basename(path), [], None, Arg(path)))
    elif not run_by_ending(walk, path) or not as_code:
        judge_settings(walk, call, source)


def _runs(walk: Walk, word: str) -> bool:
    name = word.rpartition("/")[2]
    is_program = walk.judgement.rulebook.knows(name) and walk.programs.known(name).builtin is None
    return is_program or name in _WORDS.commands


def _lines(walk: Walk, text: str) -> Iterator[str]:
    """Values that start with the name of a program: whole lines, what follows `key:` or `key =`, strings, and `$(..)`."""
    seen = set[str]()
    for line in text.split("\n")[:_MAX_LINES]:
        found = [match[1] or match[2] or "" for match in _RE.string.finditer(line)]
        after = [line[match.end() :] for match in itertools.islice(_RE.separator.finditer(line), _MAX_PARTS)]
        for part in (line, *after, *found, *(text.partition("=")[2] for text in found)):
            part = _RE.around.sub("", part or "").replace('\\"', '"')
            if part not in seen and " " in part and _runs(walk, part.split(None, 1)[0]):
                seen.add(part)
                yield part


def _lists(walk: Walk, text: str) -> Iterator[Sequence[str]]:
    """Lists of words, in whatever brackets, from the first one on that is a program; of options, for the last one before."""
    program = ""
    for match in re.finditer(r"[\[({]([^\[\](){}]*)[\])}]", text):
        words = ["".join(word) for word in _RE.word.findall(match[1])]
        start = next((place for place, word in enumerate(words) if _runs(walk, word)), None)
        if start is not None:
            program = words[start]
            if len(words) > start + 1:
                yield words[start:]
        elif program and words and words[0][:1] == "-":
            yield [program, *words]
