"""Follow build tools, task runners and package managers to the commands that the project's files list."""

import posixpath
import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from itertools import pairwise

from ..programs.tables import all_options, skip_options
from ..scripts import task_lists
from ..scripts.makefile import Makefile, cmake_commands
from ..scripts.task_lists import spellings
from ..values.data_files import Patterns, Words, read_tables
from ..values.disk import Source, absolute
from ..values.word_values import UNKNOWN, Arg, Value
from .code_programs import build_package
from .operators import shell_quoted
from .script_files import here, lookup, names_in, run_line, run_shell, run_words
from .script_programs import first_file, follow_compiler, follow_language
from .settings_files import judge_settings
from .walk import Call, Walk

_MAX_FOLDERS = 40
_MAX_PARENTS = 6
_MAX_WORKSPACES = 16
_WORDS = Words(__file__)
_RE = Patterns(__file__)
_TABLES = read_tables(__file__)
_NPM_WORDS = {word: scripts.split() for words, scripts in _TABLES["npm"].items() for word in words.split()}
_BUILT = (".c", ".cc", ".cpp", ".go", ".rs")
_COMPILES = "$(CC) $(CFLAGS) $(CPPFLAGS) $(LDFLAGS) $(LDLIBS) -o $@; $(CXX) $(CXXFLAGS) -o $@"
_NPM_VALUES = "prefix workspace dir cwd filter loglevel registry script-shell"


def _make(walk: Walk, call: Call) -> None:
    operands, options = all_options(call.args, "CfIoWl", "directory file makefile")
    names = {option for option, _ in options}
    if not names.isdisjoint(_WORDS.make_describes_itself):
        return
    folder = ""
    for option, value in options:
        if option in ("-C", "--directory") and value:
            folder = posixpath.normpath(f"{folder}/{value}") if folder and value[:1] != "/" else str(value)
    files = [str(value) for option, value in options if option in ("-f", "--file", "--makefile") and value]
    given = {name.rstrip(":?+"): value for name, equals, value in (arg.partition("=") for arg in operands) if equals}
    flags = walk.variables.inherited("MAKEFLAGS") or ""
    if not names.isdisjoint(("-e", "--environment-overrides")) or "e" in flags.partition(" ")[0]:
        given = {name: walk.variables.inherited(name) or UNKNOWN for name in walk.variables.exported} | given
    cwd = absolute(folder or ".", here(walk))
    if cwd:  # a number follows `-j`
        targets = [str(arg) for arg in operands if "=" not in arg and not arg.isdigit()]
        only_prints = not names.isdisjoint(_WORDS.make_runs_nothing)
        _run_makefile(walk, cwd, [absolute(name, cwd) for name in files], given, targets, only_prints=only_prints)


def _run_makefile(
    walk: Walk, cwd: str, files: list[str], given: dict[str, str], targets: Sequence[str], *, only_prints: bool
) -> None:
    """`only_prints`: it runs no recipe, but what its variables are computed with."""
    sources = [Arg(f"{cwd}/{target.removesuffix('.o')}{end}") for target in targets for end in _BUILT]
    follow_compiler(walk, Call("cc", sources, None, Arg("cc")))
    built = [source for path in sources if (source := lookup(walk, path)) is not None]
    places = files or [f"{cwd}/{name}" for name in ("GNUmakefile", "makefile", "Makefile")]
    found = (source for place in places if (source := lookup(walk, place)) is not None and not source.is_binary)
    main = next(found, next(iter(built), None))
    if main is None or not main.is_whole:
        return
    is_new = [main.is_new]

    def include(name: str) -> str | None:
        if "*" in name:
            folder, _, pattern = absolute(name, cwd).rpartition("/")
            names = [one for one in names_in(walk, folder) if fnmatchcase(one, pattern)]
            return "\n".join(include(f"{folder}/{one}") or "" for one in names[:_MAX_WORKSPACES] if "*" not in one)
        source = lookup(walk, absolute(name, cwd))
        if source is None or source.is_binary or not source.is_whole:
            return None
        is_new[0] |= source.is_new
        return source.text

    own = "".join(f"\n{target}:\n\t{_COMPILES}\n" for target in targets if built)
    makefile = Makefile(("" if main in built else main.text) + own, include, given, walk.variables.inherited)
    lines = makefile.lines(targets)
    source = main._replace(is_new=is_new[0])
    search = makefile.setting("PATH")
    shell, flags = makefile.setting("SHELL"), makefile.setting(".SHELLFLAGS")
    if shell or flags:
        lines = [f"{shell or '/bin/sh'} {flags or '-c'} true", *lines]
    for line in (*dict.fromkeys(makefile.shells), *([] if only_prints else lines)):
        if line.strip() and line.strip() != UNKNOWN:
            run_line(walk, source, line, cwd=cwd, variables={"PATH": search} if search else None, how="make")


def _npm(walk: Walk, call: Call) -> None:
    args = list(call.args)
    if call.name == "bun":
        follow_language(walk, call)
    start, options = skip_options(args, "Cw", _NPM_VALUES)
    operands = args[start:]
    word = str(operands[0]) if operands else "install" if call.name in ("yarn", "pnpm", "bun") else ""
    if call.name == "npm" and not word:
        return
    rest = operands[1:]
    more, later = skip_options(rest, "Cw", _NPM_VALUES)
    options += later
    folders = [str(value) for name, value in options if name in ("-C", "--prefix", "--dir", "--cwd") and value]
    package = _upwards(walk, absolute((*folders, ".")[0], here(walk)), "package.json")
    if package is None and word not in _NPM_WORDS:
        return
    if word in ("run", "run-script", "rum", "urn", "exec", "x") or (word not in _NPM_WORDS and call.name != "npm"):
        if word in ("run", "run-script", "rum", "urn"):
            rest = rest[more:]
            word, rest = (str(rest[0]), rest[1:]) if rest else ("", [])
        names = [word]
    else:
        names = _NPM_WORDS.get(word, [])
    if "--ignore-scripts" in call.args:
        names = [name for name in names if name not in _NPM_WORDS["install"]]
    passed = [shell_quoted(arg) for arg in rest if arg != "--" and arg not in _WORDS.in_workspaces]
    passed = passed if len(names) == 1 else []
    packages = [package] if package is not None else []
    own = args[: args.index(Arg("--"))] if "--" in args else args
    if not _WORDS.in_workspaces.isdisjoint(arg.partition("=")[0] for arg in own):
        packages = _workspaces(walk, package) if package is not None else []
    elif len(names) > 1:  # of an installation: folders that are given
        given = (lookup(walk, f"{arg.removeprefix('file:')}/package.json") for arg in rest if "/" in arg)
        packages += filter(None, given)
    for one in packages:
        _run_scripts(walk, one, names, passed)


def _workspaces(walk: Walk, package: Source) -> list[Source]:
    """The packages below a package."""
    cwd = posixpath.dirname(absolute(package.path, here(walk)))
    folders: list[str] = []
    for pattern in task_lists.package_workspaces(package.text) or ["packages/*"]:
        before, star, _ = pattern.partition("*")
        names = names_in(walk, f"{cwd}/{before}") if star else [""]
        folders += [posixpath.normpath(f"{cwd}/{before}/{name}") for name in names]
    found = (lookup(walk, f"{folder}/package.json") for folder in folders[:_MAX_WORKSPACES])
    return [source for source in found if source is not None]


def _run_scripts(walk: Walk, package: Source, names: Iterable[str], passed: Sequence[str]) -> None:
    cwd = posixpath.dirname(absolute(package.path, here(walk)))
    scripts = task_lists.package_scripts(package.text)
    for name in names:
        for one in (f"pre{name}", name, f"post{name}"):
            if one in scripts:
                text = " ".join([scripts[one], *(passed if one == name else ())])
                run_line(walk, package, text, cwd=cwd)


def _upwards(walk: Walk, folder: str, name: str) -> Source | None:
    for _ in range(_MAX_PARENTS):
        if not folder or folder == "/":
            return None
        source = lookup(walk, f"{folder}/{name}")
        if source is not None:
            return source
        folder = posixpath.dirname(folder)
    return None


def _run_all(walk: Walk, call: Call) -> None:
    """`npm-run-all lint 'test:*'`, `run-s build`: several scripts of the package."""
    package = _upwards(walk, absolute(".", here(walk)), "package.json")
    if package is not None:
        patterns = [str(arg) for arg in call.args if arg[:1] != "-"]
        scripts = task_lists.package_scripts(package.text)
        names = [name for name in scripts for one in patterns if fnmatchcase(name, one)]
        _run_scripts(walk, package, dict.fromkeys(names), ())


def _direnv(walk: Walk, call: Call) -> None:
    """`direnv allow` and `direnv exec` run the folder's .envrc."""
    source = _upwards(walk, absolute(".", here(walk)), ".envrc")
    if source is not None and call.args[:1] and call.args[0] in ("allow", "exec", "reload", "permit", "grant"):
        run_shell(walk, source)


def _just(walk: Walk, call: Call) -> None:
    start, options = skip_options(call.args, "fd", "justfile working-directory")
    named = [str(value) for option, value in options if option in ("-f", "--justfile") and value]
    source = first_file(walk, named) or first_file(walk, ("justfile", "Justfile", ".justfile"))
    if source is not None:
        more = first_file(walk, re.findall(r"(?m)^import\??\s+['\"]([^'\"]+)['\"]", source.text))
        text = source.text + (f"\n{more.text}" if more is not None else "")
        _run_lines(walk, source, task_lists.just_lines(text, [str(arg) for arg in call.args[start:]]))


def _deno(walk: Walk, call: Call) -> None:
    follow_language(walk, call)
    source = first_file(walk, ("deno.json", "deno.jsonc")) if call.args[:1] == ["task"] else None
    if source is not None:
        tasks = task_lists.package_scripts(source.text, "tasks")
        _run_lines(walk, source, [tasks[arg] for arg in call.args[1:] if arg in tasks])


def _task(walk: Walk, call: Call) -> None:
    start, options = skip_options(call.args, "td", "taskfile dir")
    named = [str(value) for option, value in options if option in ("-t", "--taskfile") and value]
    source = first_file(walk, named) or first_file(walk, spellings(("Taskfile.{yml,yaml}", "taskfile.{yml,yaml}")))
    if source is not None:
        lines = task_lists.taskfile_lines(source.text, [str(arg) for arg in call.args[start:]])
        if lines is None and source.is_new:
            walk.report("limit.exceeded", [source.path])
        _run_lines(walk, source, lines or ())


def _tox(walk: Walk, call: Call) -> None:
    source = first_file(walk, ("tox.ini",)) or first_file(walk, ("pyproject.toml",))
    if source is not None:
        _, options = all_options(call.args, "ecnx", "conf root workdir")
        given = [str(value) for option, value in options if option == "-e" and value]
        _run_lines(walk, source, task_lists.tox_lines(source.text, ",".join(given).split(",") if given else ()))
    if "--no-package" not in call.args:
        build_package(walk, call, absolute(".", here(walk)))


def _run_lines(walk: Walk, source: Source, lines: Iterable[str]) -> None:
    for line in lines:
        if line.strip() and line.strip() != UNKNOWN:
            run_line(walk, source, line)


def _project_runner(walk: Walk, call: Call) -> None:
    """`poe test`, `pdm run lint`, `hatch run test:cov`: a command that pyproject.toml names."""
    operands = [str(arg) for arg in call.args if arg[:1] != "-"]
    if call.name in ("pdm", "hatch", "rye", "poetry", "uv") and operands[:1] != ["run"]:
        if operands[:1] in (["build"], ["install"], ["sync"]):
            build_package(walk, call, absolute(".", here(walk)))
        return
    operands = operands[1:] if operands[:1] == ["run"] else operands
    source = first_file(walk, ("pyproject.toml",))
    if source is None or not operands:
        return
    _run_lines(walk, source, task_lists.project_scripts(source.text).get(operands[0].rpartition(":")[2], []))


def _cmake(walk: Walk, call: Call) -> None:
    args = [str(arg) for arg in call.args]
    if args[:1] in (["-E"], ["--help"], ["--version"]):
        return
    if "-P" in args:
        names, folder = args[args.index("-P") + 1 :][:1], "."
    elif args[:1] in (["--build"], ["--install"]):
        names, folder = [], "."
        _make(walk, Call("make", [Arg("-C"), *call.args[1:2]], None, Arg("make")))
    else:
        given = [arg[2:] or following for arg, following in pairwise([*args, "."]) if arg[:2] == "-S"]
        places = [arg for arg in args if arg[:1] != "-" and "=" not in arg]
        found = [place for place in places if first_file(walk, ["CMakeLists.txt"], place)]
        names, folder = ["CMakeLists.txt"], (given or found or ["."])[0]
    waiting = [source for name in names if (source := first_file(walk, [name], folder)) is not None]
    for number, source in enumerate(waiting):
        cwd = posixpath.dirname(absolute(source.path, here(walk)))
        if source.is_new:
            judge_settings(walk, call, source)
        for words in cmake_commands(source.text):
            if words and UNKNOWN not in words[0]:  # else a tool that cmake has searched for
                run_words(walk, source, words, cwd=cwd)
        if number < _MAX_FOLDERS:
            for below in _RE.included.findall(source.text):
                more = lookup(walk, f"{cwd}/{below[0]}/CMakeLists.txt" if below[0] else f"{cwd}/{below[1]}")
                if more is not None and more.is_whole and all(more.path != one.path for one in waiting):
                    waiting.append(more)


def _composer(walk: Walk, call: Call) -> None:
    source = first_file(walk, ("composer.json",))
    if source is None:
        return
    scripts = task_lists.composer_scripts(source.text)
    words = [str(arg) for arg in call.args if arg[:1] != "-"]
    names = words[1:2] if words[:1] in (["run"], ["run-script"]) else words[:1]
    for name in names:
        more = ["post-autoload-dump"] if name in ("install", "update") else []
        for one in (name, f"pre-{name}-cmd", f"post-{name}-cmd", *more):
            _run_lines(walk, source, [line for line in scripts.get(one, []) if "::" not in line])


def _xml(walk: Walk, call: Call) -> None:
    """pom.xml and build.xml: `<exec executable="..">`, `<delete dir="..">`."""
    given = [str(value) for arg, value in pairwise(call.args) if arg in ("-f", "--file", "-file", "-buildfile")]
    source = first_file(walk, given or ("pom.xml" if call.name.startswith("mvn") else "build.xml",))
    if source is None:
        return
    for kind, path in _RE.changed.findall(source.text):
        words = ["rm", "-rf" if kind == "dir" else "-f", path.replace("${user.home}", "~")]
        run_words(walk, source, [re.sub(r"\$\{(?:basedir|project\.\w+)\}", ".", word) for word in words])
    for match in _RE.executed.finditer(source.text):
        parts = _RE.argument.findall(match[2] or match[4] or "")
        words = [word for value, line, argument in parts for word in (line.split() or [value or argument])]
        run_words(walk, source, [word.replace("${user.home}", "~") for word in (match[1] or match[3], *words)])


def follow_compose(walk: Walk, call: Call) -> None:
    """Judge each service as the `docker run` that would start it."""
    args = call.args
    if not call.name.endswith("-compose"):
        start, _ = skip_options(args, "cHl", "config context host log-level")
        if args[start : start + 1] != ["compose"]:
            return
        args = args[start + 1 :]
    start, options = skip_options(
        args, "fp", "file project-name project-directory profile env-file ansi parallel progress"
    )
    if start >= len(args) or args[start] not in _WORDS.starts:
        return
    named = [str(value) for option, value in options if option in ("-f", "--file") and value]
    piped = [Source("-", call.stdin.text, is_new=True)] if "-" in named and call.stdin is not None else []
    for source in (*piped, *_files(walk, named)):
        services = task_lists.compose_options(source.text) if source.is_whole else None
        if services is None:
            if source.is_new:
                walk.report("limit.exceeded", [source.path])
            continue
        for given in filter(None, services):
            walk.start([Arg(word) for word in ("docker", "run", *given)], None)


def _files(walk: Walk, named: list[str]) -> list[Source]:
    stored = walk.lookup("COMPOSE_FILE")
    named = named or (stored.text.split(":") if isinstance(stored, Value) and stored.known and stored.text else [])
    if named:
        return [source for path in named if (source := lookup(walk, path)) is not None]
    found = (first_file(walk, task_lists.COMPOSE_NAMES), first_file(walk, task_lists.COMPOSE_OVERRIDES))
    return [source for source in found if source is not None]
