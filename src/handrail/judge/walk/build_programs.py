"""Follow build tools, task runners, test runners and package managers to the commands and code that they run in the project."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Sequence

from ..programs.wrapper_options import skip_options
from ..scripts import cmake, task_lists
from ..scripts.config_files import CONFIG_FILES, TESTS, spellings
from ..scripts.makefile import Makefile
from ..values.word_values import UNKNOWN, Arg
from . import python_files
from .operators import shell_quoted
from .script_files import here, judge_code, lookup, run_line, run_words
from .script_programs import Follower, follow, shell_words
from .sources import Source, absolute
from .walk import Call, Walk

_MAX_TESTS = 120
_MAX_FOLDERS = 40
_MAX_OWN_TESTS = 150_000
_MAX_PARENTS = 6
_MAX_WORKSPACES = 16
_IN_WORKSPACES = frozenset(("--workspaces", "--workspace", "-w", "-r", "--recursive", "--filter", "--ws"))
_INSTALL_SCRIPTS = "preinstall install postinstall prepublish preprepare prepare postprepare".split()
_PACK_SCRIPTS = "prepublishOnly prepack prepare postpack publish postpublish".split()
_NPM_WORDS = {
    **dict.fromkeys(("install", "i", "ci", "add", "install-test", "it", "link", "rebuild", "install-clean"), _INSTALL_SCRIPTS),
    **dict.fromkeys(("pack", "publish"), _PACK_SCRIPTS),
    **dict.fromkeys(("test", "t", "tst"), ["test"]),
    **{name: [name] for name in ("start", "stop", "restart", "version")},
}
_NPM_VALUES = "prefix workspace dir cwd filter loglevel registry script-shell"
_SKIPPED = re.compile(r"(?:^|/)(?:node_modules|\.git|\.tox|\.nox|\.?venv|build|dist|target|vendor|__pycache__)(?:/|$)")
_PYTEST_FILES = re.compile(r"(?:test_.*|.*_test|conftest)\.py")
_TEST_PATHS = re.compile(r"(?m)^\s*testpaths\s*=\s*((?:.|\n[ \t])+)")


def _make(walk: Walk, call: Call) -> None:
    start_args = list(call.args)
    folder, files, given, targets = "", [], {}, []
    place = 0
    while place < len(start_args):
        arg = start_args[place]
        place += 1
        if arg in ("-n", "--dry-run", "--just-print", "--recon", "-q", "--question", "--help", "--version", "-v"):
            return
        name, equals, value = arg.partition("=")
        if arg[:2] == "--" and name in ("--directory", "--file", "--makefile") or arg in ("-C", "-f", "-I", "-o", "-W", "-l"):
            taken = value if equals else str(start_args[place]) if place < len(start_args) else ""
            place += not equals
            if name in ("--directory", "-C"):
                folder = posixpath.normpath(f"{folder}/{taken}") if folder and taken[:1] != "/" else taken
            elif name in ("--file", "--makefile", "-f"):
                files.append(taken)
        elif arg[:2] in ("-C", "-f") and len(arg) > 2:
            folder, files = (arg[2:], files) if arg[1] == "C" else (folder, [*files, arg[2:]])
        elif equals and arg[:1] != "-":
            given[name.rstrip(":?+")] = value
        elif arg[:1] != "-" and not (arg.isdigit() and place > 1 and start_args[place - 2] == "-j"):
            targets.append(str(arg))
    cwd = absolute(folder or ".", here(walk))
    if cwd:
        _run_makefile(walk, call, cwd, [absolute(name, cwd) for name in files], given, targets)


def _run_makefile(
    walk: Walk, call: Call, cwd: str, files: list[str], given: dict[str, str], targets: Sequence[str]
) -> None:
    places = files or [f"{cwd}/{name}" for name in ("GNUmakefile", "makefile", "Makefile")]
    found = (source for place in places if (source := lookup(walk, place)) is not None and not source.is_binary)
    main = next(found, None)
    if main is None or not main.is_whole:
        return
    is_new = [main.is_new]

    def include(name: str) -> str | None:
        source = lookup(walk, absolute(name, cwd))
        if source is None or source.is_binary or not source.is_whole:
            return None
        is_new[0] |= source.is_new
        return source.text

    makefile = Makefile(main.text, include, given)
    lines = makefile.lines(targets)
    source = main._replace(is_new=is_new[0])
    for line in (*dict.fromkeys(makefile.shells), *lines):
        if line.strip() and line.strip() != UNKNOWN:
            run_line(walk, source, line, cwd=cwd, how="make")


def _npm(walk: Walk, call: Call) -> None:
    args = list(call.args)
    start, options = skip_options(args, "Cw", _NPM_VALUES)
    operands = args[start:]
    word = str(operands[0]) if operands else "install" if call.name in ("yarn", "pnpm", "bun") else ""
    if call.name == "npm" and not word:
        return
    rest = operands[1:]
    more, later = skip_options(rest, "Cw", _NPM_VALUES)
    options += later
    folder = next((str(value) for name, value in options if name in ("-C", "--prefix", "--dir", "--cwd") and value), ".")
    package = _upwards(walk, absolute(folder, here(walk)), "package.json")
    if package is None:
        return
    if word in ("run", "run-script", "rum", "urn", "exec", "x") or (word not in _NPM_WORDS and call.name != "npm"):
        if word in ("run", "run-script", "rum", "urn"):
            rest = rest[more:]
            word, rest = (str(rest[0]), rest[1:]) if rest else ("", [])
        names = [word]
    else:
        names = _NPM_WORDS.get(word, [])
    if "--ignore-scripts" in call.args:
        names = [name for name in names if name not in _INSTALL_SCRIPTS]
    passed = [shell_quoted(arg) for arg in rest if arg != "--" and arg not in _IN_WORKSPACES] if len(names) == 1 else []
    packages = [package]
    own = args[: args.index(Arg("--"))] if "--" in args else args
    if not _IN_WORKSPACES.isdisjoint(arg.partition("=")[0] for arg in own):
        packages = _workspaces(walk, package)
    for one in packages:
        _run_scripts(walk, one, names, passed)


def _workspaces(walk: Walk, package: Source) -> list[Source]:
    """The packages below a package."""
    assert walk.sources is not None
    cwd = posixpath.dirname(absolute(package.path, here(walk)))
    folders: list[str] = []
    for pattern in task_lists.package_workspaces(package.text) or ["packages/*"]:
        before, star, _ = pattern.partition("*")
        names = walk.sources.names(f"{cwd}/{before}") if star else [""]
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


def _first(walk: Walk, names: Iterable[str], folder: str = "") -> Source | None:
    cwd = absolute(folder or ".", here(walk))
    found = (source for name in names if cwd and (source := lookup(walk, f"{cwd}/{name}")) is not None)
    return next((source for source in found if source.is_whole and not source.is_binary), None)


def _just(walk: Walk, call: Call) -> None:
    start, options = skip_options(call.args, "fd", "justfile working-directory")
    named = [str(value) for option, value in options if option in ("-f", "--justfile") and value]
    source = _first(walk, named) or _first(walk, ("justfile", "Justfile", ".justfile"))
    if source is not None:
        _run_lines(walk, source, task_lists.just_lines(source.text, [str(arg) for arg in call.args[start:]]))


def _task(walk: Walk, call: Call) -> None:
    start, options = skip_options(call.args, "td", "taskfile dir")
    named = [str(value) for option, value in options if option in ("-t", "--taskfile") and value]
    source = _first(walk, named) or _first(walk, spellings("Taskfile.{yml,yaml} taskfile.{yml,yaml}"))
    if source is not None:
        _run_lines(walk, source, task_lists.taskfile_lines(source.text, [str(arg) for arg in call.args[start:]]))


def _tox(walk: Walk, call: Call) -> None:
    source = _first(walk, ("tox.ini",)) or _first(walk, ("pyproject.toml",))
    if source is not None:
        _run_lines(walk, source, task_lists.tox_lines(source.text))
    if "--no-package" not in call.args:
        _build_package(walk, call, absolute(".", here(walk)))


def _run_lines(walk: Walk, source: Source, lines: Iterable[str]) -> None:
    for line in lines:
        if line.strip() and line.strip() != UNKNOWN:
            run_line(walk, source, line)


def _project_runner(walk: Walk, call: Call) -> None:
    """`poe test`, `pdm run lint`, `hatch run test:cov`: a command that pyproject.toml names."""
    operands = [str(arg) for arg in call.args if arg[:1] != "-"]
    if call.name in ("pdm", "hatch", "rye", "poetry", "uv") and operands[:1] != ["run"]:
        if operands[:1] in (["build"], ["install"], ["sync"]):
            _build_package(walk, call, absolute(".", here(walk)))
        return
    operands = operands[1:] if operands[:1] == ["run"] else operands
    source = _first(walk, ("pyproject.toml",))
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
        given = [arg.removeprefix("-S") or following for arg, following in zip(args, [*args[1:], "."], strict=True) if arg.startswith("-S")]
        places = [arg for arg in args if arg[:1] != "-" and "=" not in arg]
        names, folder = ["CMakeLists.txt"], (given or [place for place in places if _first(walk, ["CMakeLists.txt"], place)] or ["."])[0]
    waiting = [source for name in names if (source := _first(walk, [name], folder)) is not None]
    for number, source in enumerate(waiting):
        cwd = posixpath.dirname(absolute(source.path, here(walk)))
        for words in cmake.commands(source.text):
            if words and UNKNOWN not in words[0]:  # else a tool that cmake has searched for
                run_words(walk, source, words, cwd=cwd)
        if number < _MAX_FOLDERS:
            for below in re.findall(r"(?i)\badd_subdirectory\s*\(\s*([\w./-]+)|\binclude\s*\(\s*([\w./-]+\.cmake)", source.text):
                more = lookup(walk, f"{cwd}/{below[0]}/CMakeLists.txt" if below[0] else f"{cwd}/{below[1]}")
                if more is not None and more.is_whole and all(more.path != one.path for one in waiting):
                    waiting.append(more)


def _meson(walk: Walk, call: Call) -> None:
    source = _first(walk, ("meson.build",))
    if source is not None:
        for text in re.findall(r"\brun_command\s*\(([^)]*)\)|\bcommand\s*:\s*\[([^\]]*)\]", source.text):
            words = re.findall(r"'([^']*)'", text[0] or text[1])
            if words:
                run_words(walk, source, words)


def _config(walk: Walk, call: Call) -> None:
    """Tools that run a file of the project as a program, and the tests that they run."""
    language, names = CONFIG_FILES.get(call.name, ("", ""))
    given = [str(value) for arg, value in zip(call.args, call.args[1:], strict=False) if arg in ("-f", "-c", "--config", "-t", "--rakefile", "--noxfile")]
    for name in (*given, *spellings(names)):
        source = _first(walk, (name,))
        if source is not None:
            if language == "python":
                python_files.follow(walk, call, [source], [posixpath.dirname(absolute(source.path, here(walk)))])
            else:
                judge_code(walk, call, source, language)
    if call.name in TESTS:
        _tests(walk, call)


def _tests(walk: Walk, call: Call) -> None:
    language, pattern, folders = TESTS[call.name]
    operands = [str(arg) for arg in call.args if arg[:1] != "-"]
    chosen = [path for path in operands if _kind(walk, path)] or folders.split()
    matches = re.compile(pattern)
    for source in _collected(walk, chosen, lambda path: matches.fullmatch(path) is not None or path in operands):
        if source.is_new or language != "c":
            judge_code(walk, call, source, language)


def _kind(walk: Walk, path: str) -> str:
    found = walk.sources.entry(absolute(path, here(walk))) if walk.sources is not None and UNKNOWN not in path else None
    return "" if found is None else "dir" if found.is_dir else "file"


def _collected(walk: Walk, places: Sequence[str], wanted: object) -> list[Source]:
    """The files below these places, those of this session first, within a budget."""
    assert walk.sources is not None and callable(wanted)
    cwd = absolute(".", here(walk))
    if not cwd:
        return []
    files: list[tuple[bool, str]] = []
    waiting = [path for place in places if (path := absolute(place, cwd))]
    seen = 0
    while waiting and seen < _MAX_FOLDERS and len(files) < _MAX_TESTS * 4:
        folder = waiting.pop(0)
        found = walk.sources.entry(folder)
        if found is None:
            continue
        if not found.is_dir:
            files.append((found.is_new, folder))
            continue
        seen += 1
        for name in walk.sources.names(folder):
            path = f"{folder}/{name}"
            if "." not in name[1:] and not name.startswith(".") and not _SKIPPED.search(path[len(cwd) :]):
                waiting.append(path)
            elif wanted(path[len(cwd) + 1 :]) and (one := walk.sources.entry(path)) is not None and not one.is_dir:
                files.append((one.is_new, path))
    sources: list[Source] = []
    left = _MAX_OWN_TESTS
    for is_new, path in sorted(dict.fromkeys(files), key=lambda file: not file[0])[:_MAX_TESTS]:
        if left <= 0 and not is_new:
            break
        source = walk.sources.read(path)
        if source is not None and not source.is_binary:
            left -= len(source.text)
            sources.append(source)
    return sources


def _pytest(walk: Walk, call: Call) -> None:
    cwd = absolute(".", here(walk))
    if not cwd or {"--version", "--help", "-h", "--fixtures"} & set(call.args):
        return
    chosen = [str(arg).partition("::")[0] for arg in call.args if arg[:1] != "-"]
    chosen = [path for path in chosen if path and _kind(walk, path)]
    if not chosen:
        chosen = _test_paths(walk) or [path for path in ("tests", "test", "src", ".") if _kind(walk, path)]
    around = ["conftest.py"]
    for path in chosen:
        parts = path.strip("./").split("/")
        around += [f"{'/'.join(parts[: end + 1])}/conftest.py" for end in range(len(parts))]
    named = {absolute(path, cwd)[len(cwd) + 1 :] for path in chosen}
    entries = [
        *(source for name in dict.fromkeys(around) if (source := lookup(walk, f"{cwd}/{name}")) is not None),
        *_collected(walk, chosen, lambda path: _PYTEST_FILES.fullmatch(posixpath.basename(path)) or path in named),
    ]
    folders = [cwd, f"{cwd}/src", *dict.fromkeys(posixpath.dirname(source.path) for source in entries)]
    python_files.follow(walk, call, list({source.path: source for source in entries}.values()), folders[:8])


def _test_paths(walk: Walk) -> list[str]:
    for name in ("pytest.ini", "pyproject.toml", "setup.cfg", "tox.ini"):
        source = _first(walk, (name,))
        match = _TEST_PATHS.search(source.text) if source is not None else None
        if match:
            return [path for path in re.findall(r"[\w./-]+", match[1]) if _kind(walk, path)]
    return []


def _pip(walk: Walk, call: Call) -> None:
    """`pip install .`: the project's own setup.py, or its own build back end."""
    operands = [str(arg) for arg in call.args if arg[:1] != "-"]
    if operands[:1] == ["pip"]:  # uv pip
        operands = operands[1:]
    if operands[:1] not in (["install"], ["wheel"], ["download"]):
        return
    for path in operands[1:] or (["."] if call.name == "uv" else []):
        path = path.partition("[")[0].removeprefix("file://")
        if _kind(walk, path) == "dir":
            _build_package(walk, call, absolute(path, here(walk)))


def _build(walk: Walk, call: Call) -> None:
    """`python -m build [folder]`, `flit build`."""
    places = [str(arg) for arg in call.args if arg[:1] != "-" and _kind(walk, str(arg)) == "dir"]
    _build_package(walk, call, absolute((places or ["."])[0], here(walk)))


def _build_package(walk: Walk, call: Call, folder: str) -> None:
    if not folder:
        return
    pyproject, setup = lookup(walk, f"{folder}/pyproject.toml"), lookup(walk, f"{folder}/setup.py")
    folders, entries = [folder], [setup] if setup is not None and not setup.is_binary else []
    if pyproject is not None and pyproject.is_whole:
        backend, path = task_lists.build_backend(pyproject.text)
        folders = [*(absolute(place, folder) for place in path), folder]
        if path and walk.sources is not None:
            own = python_files.module_file(walk.sources, backend.partition(":")[0], folders)
            entries += [own] if own is not None else []
        if "hatch" in backend and (hook := lookup(walk, f"{folder}/hatch_build.py")) is not None:
            entries.append(hook)
    python_files.follow(walk, call, entries, folders)


def _unittest(walk: Walk, call: Call) -> None:
    _pytest(walk, Call(call.name, [arg for arg in call.args if arg not in ("discover", "-s")], None, call.program))


def _inner(walk: Walk, call: Call) -> None:
    """`coverage run -m pytest`, `coverage run x.py`: Python, with options of its own before it."""
    args = list(call.args)
    if args[:1] == ["run"]:
        place = next((number for number, arg in enumerate(args) if arg == "-m" or (number and arg[:1] != "-")), len(args))
        follow(walk, Call("python", args[place:], None, Arg("python")))


def _cargo(walk: Walk, call: Call) -> None:
    words = [str(arg) for arg in call.args if arg[:1] != "-"]
    if not words or words[0] not in ("build", "run", "test", "check", "install", "b", "r", "t", "bench"):
        return
    for name in ("build.rs", "src/main.rs", "src/lib.rs"):
        source = _first(walk, (name,))
        if source is not None and (source.is_new or name == "build.rs"):
            judge_code(walk, call, source, "c")
    if words[0] in ("run", "test", "r", "t"):
        _tests(walk, call)


def _go(walk: Walk, call: Call) -> None:
    words = [str(arg) for arg in call.args if arg[:1] != "-"]
    if words[:1] == ["generate"]:
        for source in _collected(walk, ["."], lambda path: path.endswith(".go")):
            for text in re.findall(r"(?m)^//go:generate\s+(.+)$", source.text):
                run_words(walk, source, shell_words(text))
    elif words[:1] and words[0] in ("run", "test"):
        _tests(walk, Call(call.name, [Arg(word.removesuffix("/...")) for word in words[1:2]], None, call.program))


def _composer(walk: Walk, call: Call) -> None:
    source = _first(walk, ("composer.json",))
    if source is None:
        return
    scripts = task_lists.composer_scripts(source.text)
    words = [str(arg) for arg in call.args if arg[:1] != "-"]
    names = words[1:2] if words[:1] in (["run"], ["run-script"]) else words[:1]
    for name in names:
        for one in (name, f"pre-{name}-cmd", f"post-{name}-cmd", "post-autoload-dump" if name in ("install", "update") else ""):
            _run_lines(walk, source, [line for line in scripts.get(one, []) if "::" not in line])


def _xml(walk: Walk, call: Call) -> None:
    """pom.xml and build.xml: `<exec executable="..">`, `<delete dir="..">`."""
    source = _first(walk, ("pom.xml",) if call.name.startswith("mvn") else ("build.xml",))
    if source is None:
        return
    for kind, path in re.findall(r"<(?:delete|mkdir|touch)\b[^>]*?\b(dir|file)=\"([^\"]*)\"", source.text):
        words = ["rm", "-rf" if kind == "dir" else "-f", path.replace("${user.home}", "~")]
        run_words(walk, source, [re.sub(r"\$\{(?:basedir|project\.\w+)\}", ".", word) for word in words])
    for match in re.finditer(r"<exec\b[^>]*?\bexecutable=\"([^\"]*)\"(.*?)</exec>|<executable>([^<]*)</executable>\s*(?:<arguments>(.*?)</arguments>)?", source.text, re.S):
        words = [match[1] or match[3], *re.findall(r"<arg\b[^>]*?\b(?:value|line)=\"([^\"]*)\"|<argument>([^<]*)<", match[2] or match[4] or "")]
        line = [word if isinstance(word, str) else word[0] or word[1] for word in words]
        run_words(walk, source, [re.sub(r"\$\{user\.home\}", "~", word) for word in line])


def _pre_commit(walk: Walk, call: Call) -> None:
    source = _first(walk, (".pre-commit-config.yaml",))
    if source is not None and (not call.args or call.args[0] in ("run", "try-repo")):
        _run_lines(walk, source, [line.strip("'\" ") for line in re.findall(r"(?m)^\s*entry:\s*(.+)$", source.text)])


FOLLOWERS: dict[str, Follower] = {
    **dict.fromkeys((*CONFIG_FILES, *TESTS), _config),
    **dict.fromkeys(("make", "gmake", "bmake"), _make),
    **dict.fromkeys(("npm", "yarn", "pnpm", "bun"), _npm),
    "just": _just,
    **dict.fromkeys(("task", "go-task"), _task),
    "tox": _tox,
    **dict.fromkeys(("poe", "pdm", "hatch", "rye", "poetry"), _project_runner),
    **dict.fromkeys(("cmake", "ccmake"), _cmake),
    "meson": _meson,
    **dict.fromkeys(("pytest", "py.test", "pytest-3"), _pytest),
    "unittest": _unittest,
    **dict.fromkeys(("pip", "pip3", "pipx", "uv"), _pip),
    **dict.fromkeys(("build", "flit", "pyproject-build"), _build),
    **dict.fromkeys(("coverage", "kernprof", "scalene"), _inner),
    "cargo": _cargo,
    "go": _go,
    "composer": _composer,
    **dict.fromkeys(("mvn", "mvnw", "ant"), _xml),
    "pre-commit": _pre_commit,
}
