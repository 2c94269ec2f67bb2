"""Follow a script that lies on the disk, in the shell's language or another one, as if its text were part of the command."""

import functools
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from fnmatch import fnmatchcase

from ..grammar.syntax import SourceMap, TooLarge
from ..languages import read as read_code
from ..programs.tables import SHELLS
from ..rules import Rulebook
from ..values.data_files import Patterns
from ..values.disk import DiskEntry, Source, Sources, absolute
from ..values.taints import Taint
from ..values.word_values import UNKNOWN, Arg, Array, Computed, Either, OtherName, Value
from .interpreters import make_host
from .judgement import Judgement, Limit, Scope
from .state import Held, State
from .walk import Call, Walk

_RE = Patterns(__file__)
MAX_DEPTH = 6
_MAX_STEPS = {False: 2_000, True: 5_000}
_MAX_SHELL = {False: 32_000, True: 80_000}
"""By whether the script is new: what the project has had before is read as far as that is cheap."""
_MAX_CODE = 60_000
_MAX_MATCHES = 16
_MAX_FOLDERS = 40
_SOME_FOLDER = "/project"
"""Where work is expected, if nobody has said where: files that are written there are looked up by absolute paths."""
_MAX_SMALL = 3_000
"""A program of this session that starts others is read whatever it names, if it is as short as most of them."""


def here(walk: Walk) -> str:
    """The working directory as the disk takes it: the walk keeps it relative when it is in the project."""
    cwd, project = walk.cwd, walk.judgement.project
    return cwd if cwd[:1] in ("/", "~") else absolute(cwd, project) if UNKNOWN not in cwd else ""


def on_disk(walk: Walk, path: str) -> str:
    """The path of a file as the disk takes it; empty when it is not known or nothing may be looked up."""
    return absolute(str(path), here(walk)) if walk.sources is not None and path and UNKNOWN not in path else ""


def own_files(walk: Walk) -> AbstractContextManager[object]:
    """Where nothing may be looked up on the disk: the files that the command itself has written, as the only ones there are."""
    found = ExitStack()
    if walk.sources is None:
        found.enter_context(Held(walk, sources=Sources(None)))
        found.enter_context(Held(walk.judgement, project=walk.judgement.project or _SOME_FOLDER))
    return found


def lookup(walk: Walk, path: str, *, runs: bool = True) -> Source | None:
    """What a file holds: as the command itself has written it, else as it is on the disk. `runs`: it would be run."""
    if walk.sources is None or UNKNOWN in path or not path:
        return None
    known = walk.known_file(path)
    if isinstance(known, OtherName):
        return walk.sources.read(on_disk(walk, known.program) or known.program)
    if known is not None and known.text.strip() == UNKNOWN:
        for option in known.options if isinstance(known, Either) else (known,):
            if runs and isinstance(option, Computed):
                written = Source(str(path), option.program, is_new=True)
                walk.programs.judge_settings(walk, Call(posixpath.basename(path), [], None, Arg(path)), written)
        fetched = Taint.NETWORK in known.taints and walk.written_file(path) is known
        if runs and fetched and not _RE.compiled.search(path):
            walk.report("rce.download_to_shell", [path])
        return None
    if known is not None:
        return Source(str(path), known.text, is_new=True)
    place = on_disk(walk, path)
    return walk.sources.read(place) if place else None


def matching(walk: Walk, path: str) -> list[str]:
    """The files on the disk that a path with wildcards, or one that find fills in, may stand for."""
    folder, _, name = path.rpartition("/")
    below = folder.endswith(UNKNOWN)
    start = on_disk(walk, folder.removesuffix(UNKNOWN).rstrip("/") or ("/" if path[:1] == "/" else "."))
    found: list[str] = []
    waiting = [start] if start and not _RE.wild.search(start) and name.strip("*?" + UNKNOWN) else []
    for place in waiting:
        for one in names_in(walk, place):
            if fnmatchcase(one, name.replace(UNKNOWN, "*")):
                found.append(f"{place}/{one}")
            elif below and "." not in one and len(waiting) < _MAX_FOLDERS:
                waiting.append(f"{place}/{one}")
    return found[:_MAX_MATCHES]


def entry(walk: Walk, path: str) -> DiskEntry | None:
    """What is at a path as the command writes it: on the disk, or made by the command itself."""
    place = on_disk(walk, path)
    if not place or walk.sources is None:
        return None
    found = walk.sources.entry(place)
    if not walk.state.files or place.startswith("/dev/"):
        return found
    if (made := walk.written_file(path)) is not None and not isinstance(made, OtherName):
        return DiskEntry(place, is_dir=False, size=len(made.text), is_new=True)
    return found or (DiskEntry(place, is_dir=True, size=0, is_new=True) if _made_in(walk, path) else None)


def names_in(walk: Walk, folder: str) -> list[str]:
    """The names in a folder, with those that the command itself has written."""
    there = absolute(folder, here(walk))
    names = walk.sources.names(there) if there and walk.sources is not None else []
    return list(dict.fromkeys((*names, *_made_in(walk, folder))))


def _made_in(walk: Walk, folder: str) -> list[str]:
    above = f"{walk.path(folder).rstrip('/')}/".removeprefix("./")
    made = (path[len(above) :].partition("/")[0] for path in walk.state.files if path.startswith(above))
    return [name for name in made if name.strip("~") and not _RE.wild.search(name)]


def run_shell(
    walk: Walk, source: Source, args: Sequence[Arg] = (), stdin: Value | None = None, *, same_shell: bool = False
) -> None:
    """A shell script; with `same_shell` what it sets stays."""
    if len(source.text) > _MAX_SHELL[source.is_new]:
        source = source._replace(is_whole=False)
    if not _may_follow(walk, source, ("sh", source.path, tuple(args))):
        return
    with followed(walk, source, same_shell=same_shell) as inside:
        name = Value(source.path)
        inside.state.name_program(name)
        inside.state.assign("BASH_SOURCE", Array({"0": name}))
        if args or not same_shell:
            inside.state.arguments = tuple(arg.value() for arg in args)
        inside.run_text(Value(source.text), stdin, "source", same_shell=True)


def run_line(
    walk: Walk, source: Source, text: str, *, cwd: str = "", variables: Mapping[str, str] | None = None, how: str = "-c"
) -> None:
    """One command line that a build file holds, for a shell of its own."""
    if not _may_follow(walk, source, ("line", cwd, text)):
        return
    with followed(walk, source, cwd=cwd) as inside:
        for name, value in (variables or {}).items():
            inside.state.assign(name, Value(value))
            inside.variables.exported.add(name)
        inside.run_text(Value(text), None, how, same_shell=True)


def run_words(walk: Walk, source: Source, words: Sequence[str], *, cwd: str = "") -> None:
    """One command line that a build file holds as a list of words."""
    if not _may_follow(walk, source, ("words", cwd, tuple(words))):
        return
    with followed(walk, source, cwd=cwd) as inside:
        inside.start([Arg(word) for word in words], None)


def run_with_file(walk: Walk, source: Source, call: Call, path: str, stdin: Value | None) -> None:
    """A command line once more, now that it is known what one of its files holds."""
    if not _may_follow(walk, source, ("file", call.name, path, tuple(call.args))):
        return
    with followed(walk, source) as inside:
        inside.state.write(inside.path(path), Value(source.text))
        inside.start(call.argv, stdin)


def judge_code(walk: Walk, call: Call, source: Source, language: str, text: str | None = None) -> None:
    """A program in another language. `text`: the part of it that runs."""
    code = source.text if text is None else text
    runs_arguments = _RE.starts.search(code) is not None and (
        _RE.arguments.search(code) is not None or (source.is_new and len(code) < _MAX_SMALL)
    )
    if _RE.changes.search(code) and _RE.arguments.search(code) and any(arg[:1] in ("/", "~", ".") for arg in call.args):
        runs_arguments = True  # it may change what it is given
    if not runs_arguments and not _matters(code, walk.judgement.rulebook):
        return
    assert walk.sources is not None
    if (not source.is_new and len(code) > _MAX_CODE) or not walk.sources.may_judge(len(code), is_new=source.is_new):
        return
    if not _may_follow(walk, source, (language, source.path, code, tuple(call.args) if runs_arguments else ())):
        return
    with followed(walk, source, is_code=True) as inside:
        scope = walk.judgement.scope
        assert scope is not None
        host = make_host(inside, call, language, scope.root, functools.partial(_as_commands, walk.judgement))
        read_code(host, code, strings=source.is_new)
        matches = [match for match in host.matches if scope.counts_in_code(match.rule, match.reach)]
        named = host.arguments and posixpath.basename(host.arguments[0]) == posixpath.basename(source.path)
        if not named or _RE.reads_code.search(code):
            # In what is only imported, a command that is computed is the rule; a file that is read and run is followed.
            matches = [match for match in matches if match.rule.id != "code.exec_computed"]
        if not _RE.shell_words.search(code):
            matches = [match for match in matches if match.rule.id != "rce.reverse_shell"]
        walk.judgement.add(matches, call.argv, walk.span(call.argv), is_checked=True)


@functools.lru_cache(256)
def _matters(code: str, rulebook: Rulebook) -> bool:
    """Whether a program can do anything outside its tree: it names a place there, or runs a program that there are rules for."""
    outside = _RE.outside.search(code) is not None
    if outside and _RE.changes.search(code):
        return True
    return _RE.runs.search(code) is not None and (outside or _programs(rulebook).search(code) is not None)


@functools.lru_cache(4)
def _programs(rulebook: Rulebook) -> re.Pattern[str]:
    """A string that starts with the name of a program, or holds it after another command."""
    names = "|".join(sorted(map(re.escape, {*rulebook.names(), *SHELLS, "sudo"})))
    return re.compile(rf"(?:['\"`({{]|&& |; |\| |\b(?:sudo|exec|env) )(?:/[\w/]*/)?(?:{names})(?=['\"` ])")


def _as_commands(judgement: Judgement, starts: bool) -> Held:
    """What a program of this session starts is judged like a shell script's command: where it is not known, it asks."""
    scope = judgement.scope
    if starts and scope is not None and scope.is_new:
        scope = scope._replace(is_code=False)
    return Held(judgement, scope=scope)


@contextmanager
def followed(
    walk: Walk, source: Source, *, cwd: str = "", same_shell: bool = False, is_code: bool = False
) -> Iterator[Walk]:
    """Another walk for what a file holds, in which fewer findings count. It ends quietly where it would be too much."""
    outer, judgement, sources = walk.judgement.scope, walk.judgement, walk.sources
    assert sources is not None
    depth = outer.depth + 1 if outer is not None else 1
    inside = _inside(walk, cwd or here(walk) or walk.cwd, same_shell=same_shell)
    is_new = source.is_new
    scope = Scope(
        _shown(source.path, judgement.project),
        sources.root(here(walk), judgement.project),
        is_new,
        is_code or (outer is not None and outer.is_code),
        depth,
        len(source.text),
        walk.written_file(source.path) is not None,
    )
    gave_up = False
    try:
        with judgement.in_script(scope, lambda: inside.cwd, _MAX_STEPS[is_new]):
            yield inside
    except (Limit, TooLarge, RecursionError):
        gave_up = True
    finally:
        state = inside.state
        inside.close()
    _keep(walk.state, state, same_shell=same_shell and not gave_up)
    if gave_up and is_new and not scope.is_code:
        judgement.report("limit.exceeded", [source.path], walk.span([]))


def _inside(walk: Walk, cwd: str, *, same_shell: bool) -> Walk:
    state, outer = State(cwd), walk.state
    state.first_path = outer.first_path
    for name, value in outer.variables.items():
        if same_shell or name in walk.variables.exported:
            state.variables[name] = value
    state.files.update(outer.files)
    state.file_names |= outer.file_names
    state.option_names |= outer.option_names
    state.has_trees = outer.has_trees
    if same_shell:
        state.functions.update(outer.functions)
        state.aliases.update(outer.aliases)
        state.arguments = outer.arguments
    inside = Walk(walk.judgement, state, walk.programs, SourceMap(walk.source_map, whole=walk.place), walk.sources)
    inside.under = walk.under
    inside.variables.exported |= walk.variables.exported
    return inside


def _keep(outer: State, state: State, *, same_shell: bool) -> None:
    """What is left behind: the files that were written; in the same shell also what was set."""
    for path, content in state.files.items():
        if outer.files.get(path) is not content and not path.startswith("/dev/fd/"):
            outer.write(path, content)
    if not same_shell:
        return
    for name, value in state.variables.items():
        if outer.variables.get(name) is not value and name != "BASH_SOURCE":
            outer.assign(name, value)
    for name, functions in state.functions.items():
        if outer.functions.get(name) is not functions and functions:
            outer.define(name, functions[-1])
    for name, text in state.aliases.items():
        outer.alias(name, text)
    outer.cwd = state.cwd


def _may_follow(walk: Walk, source: Source, key: object) -> bool:
    """Once each, and not too deep. A new script that is too long to be read is asked about; one that the project has is not."""
    assert walk.sources is not None
    scope = walk.judgement.scope
    full = (key, here(walk), scope is not None and scope.is_code)
    if full in walk.sources.followed:
        return False
    walk.sources.followed.add(full)
    if source.is_whole and (scope is None or scope.depth < MAX_DEPTH):
        return True
    if source.is_new:
        walk.judgement.report("limit.exceeded", [source.path], walk.span([]))
    return False


def _shown(path: str, project: str) -> str:
    return posixpath.relpath(path, project) if project and path.startswith(f"{project}/") else path
