"""Follow test runners, Python's packaging tools and compilers' front ends to the code of the project that they run."""

import fnmatch
import posixpath
import re
from collections.abc import Callable, Sequence
from itertools import pairwise

from ..programs.tables import skip_options
from ..scripts import task_lists
from ..scripts.task_lists import CONFIG_FILES, LISTED, TESTS, spellings
from ..values.data_files import Patterns, Words, read_tables
from ..values.disk import Source, absolute
from ..values.word_values import Arg, Value
from . import python_files
from .operators import shell_quoted
from .program_options import names_command
from .script_files import entry, here, judge_code, lookup, names_in, run_line, run_words
from .script_programs import first_file, follow, shell_words
from .settings_files import judge_settings
from .walk import Call, Walk

_RE = Patterns(__file__)
_WORDS = Words(__file__)
_TABLES = read_tables(__file__)
_MAX_TESTS = 120
_MAX_FOLDERS = 40
_MAX_OWN_TESTS = 150_000
_MAX_PARENTS = 12


def _config(walk: Walk, call: Call) -> None:
    """Tools that run a file of the project as a program, and the tests that they run."""
    language, *names = CONFIG_FILES.get(call.name, [""])
    given = [str(value) for arg, value in pairwise(call.args) if arg in _WORDS.names_file]
    for name in (*given, *spellings(names)):
        source = first_file(walk, (name,))
        if source is not None:
            if language == "python":
                python_files.follow(walk, call, [source], [posixpath.dirname(absolute(source.path, here(walk)))])
            else:
                judge_code(walk, call, source, language)
    if call.name in TESTS:
        _tests(walk, call)


def _listed(walk: Walk, call: Call) -> None:
    """Tools that run the commands which a file lists: one of the project, or one that they are given."""
    names, _, pattern = LISTED[call.name].partition(" | ")
    given = [str(arg) for arg in call.args if arg[:1] != "-" and "://" not in arg]
    listed = sorted(names_in(walk, ".")) if "*" in names else ()
    found = [one for name in names.split() for one in (fnmatch.filter(listed, name) if "*" in name else [name])]
    for source in filter(None, (first_file(walk, (name,)) for name in (*given, *found)[:_MAX_FOLDERS])):
        if source.is_new:
            judge_settings(walk, call, source)
        for words in task_lists.playbook_commands(source.text) if source.is_new and "playbook" in call.name else ():
            run_words(walk, source, words)
        for match in re.finditer(pattern, source.text):
            run_line(walk, source, _RE.joined.sub(r"\1 \1", next(filter(None, match.groups()), "").replace('\\"', '"')))


def _served(walk: Walk, call: Call) -> None:
    """Programs that import a module of the project: `gunicorn shop.wsgi:app`, `celery -A tasks worker`."""
    _config(walk, call)
    cwd = absolute(".", here(walk))
    named = [str(arg).rpartition("=")[2].partition(":")[0] for arg in call.args]
    for name in named if cwd else ():
        name = name.removesuffix(".py").replace("/", ".")
        source = python_files.module_file(walk, name, [cwd]) if _RE.module.fullmatch(name) else None
        if source is not None and not source.is_binary:
            python_files.follow(walk, call, [source], [cwd])


def _tests(walk: Walk, call: Call) -> None:
    language, pattern, *folders = TESTS[call.name]
    operands = [str(arg) for arg in call.args if arg[:1] != "-"]
    chosen = [path for path in operands if _kind(walk, path)] or folders
    matches = re.compile(pattern)
    for source in _collected(walk, chosen, lambda path: matches.fullmatch(path) is not None or path in operands):
        if source.is_new or language != "c":
            judge_code(walk, call, source, language)


def _kind(walk: Walk, path: str) -> str:
    found = entry(walk, path)
    return "" if found is None else "dir" if found.is_dir else "file"


def _collected(walk: Walk, places: Sequence[str], wanted: Callable[[str], bool]) -> list[Source]:
    """The files below these places, those of this session first, within a budget."""
    cwd = absolute(".", here(walk))
    if not cwd:
        return []
    files: list[tuple[bool, str]] = []
    waiting = [path for place in places if (path := absolute(place, cwd))]
    seen = 0
    while waiting and seen < _MAX_FOLDERS and len(files) < _MAX_TESTS * 4:
        folder = waiting.pop(0)
        found = entry(walk, folder)
        if found is None:
            continue
        if not found.is_dir:
            files.append((found.is_new, folder))
            continue
        seen += 1
        for name in names_in(walk, folder):
            path = f"{folder}/{name}"
            if "." not in name[1:] and not name.startswith(".") and not _RE.skipped.search(path[len(cwd) :]):
                waiting.append(path)
            elif wanted(path[len(cwd) + 1 :]) and (one := entry(walk, path)) is not None and not one.is_dir:
                files.append((one.is_new, path))
    sources: list[Source] = []
    left = _MAX_OWN_TESTS
    for is_new, path in sorted(dict.fromkeys(files), key=lambda file: not file[0])[:_MAX_TESTS]:
        source = lookup(walk, path) if is_new or left > 0 else None
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
    plugins = _RE.plugin.findall(" ".join(call.args)) + _added_plugins(walk)
    files = ["test_*.py", "*_test.py", "conftest.py"]
    for settings in _test_settings(walk):
        files += [name.strip("\"',[]") for match in _RE.python_files.findall(settings.text) for name in match.split()]
    matches = re.compile("|".join(map(fnmatch.translate, files))).match
    named = {absolute(path, cwd)[len(cwd) + 1 :] for path in chosen}
    entries = [
        *(source for name in plugins if (source := python_files.module_file(walk, name, [cwd])) is not None),
        *(source for name in dict.fromkeys(around) if (source := lookup(walk, f"{cwd}/{name}")) is not None),
        *_collected(walk, chosen, lambda path: path in named or matches(posixpath.basename(path)) is not None),
    ]
    if "--doctest" in call.text:
        for source in (*entries, *_collected(walk, chosen, lambda path: path.endswith((".py", ".txt", ".rst", ".md")))):
            python_files.judge_examples(walk, call, source)
    folders = [cwd, f"{cwd}/src", *dict.fromkeys(posixpath.dirname(source.path) for source in entries)]
    python_files.follow(walk, call, list({source.path: source for source in entries}.values()), folders[:8])


def _added_plugins(walk: Walk) -> list[str]:
    """The plugins that a variable or the project's settings add."""
    stored = walk.lookup("PYTEST_PLUGINS")
    found = stored.text.split(",") if isinstance(stored, Value) and stored.known else []
    for source in _test_settings(walk):
        added = re.search(r"(?m)^\s*addopts\s*=(.*)$", source.text)
        found += _RE.plugin.findall(re.sub("[\"']", " ", added[1])) if added else []
    return found


def _test_settings(walk: Walk) -> list[Source]:
    names = ("pytest.ini", "pyproject.toml", "setup.cfg", "tox.ini")
    return [source for name in names if (source := first_file(walk, (name,))) is not None]


def _test_paths(walk: Walk) -> list[str]:
    found = (match for source in _test_settings(walk) if (match := _RE.test_paths.search(source.text)))
    named = next(found, None)
    return [path for path in re.findall(r"[\w./-]+", named[1]) if _kind(walk, path)] if named else []


def _pip(walk: Walk, call: Call) -> None:
    """`pip install .`: the project's own setup.py, or its own build back end."""
    operands = [str(arg) for arg in call.args if arg[:1] != "-"]
    if operands[:1] == ["pip"]:  # uv pip
        operands = operands[1:]
    if operands[:1] not in (["install"], ["wheel"], ["download"]):
        return
    for path in operands[1:] or (["."] if call.name == "uv" else []):
        path = path.partition("[")[0].removeprefix("file://")
        if path.rstrip("/") == "." or _kind(walk, path) == "dir":
            build_package(walk, call, absolute(path, here(walk)))


def _build(walk: Walk, call: Call) -> None:
    """`python -m build [folder]`, `flit build`."""
    places = [str(arg) for arg in call.args if arg[:1] != "-" and _kind(walk, str(arg)) == "dir"]
    build_package(walk, call, absolute((places or ["."])[0], here(walk)))


def build_package(walk: Walk, call: Call, folder: str) -> None:
    if not folder:
        return
    pyproject, setup = lookup(walk, f"{folder}/pyproject.toml"), lookup(walk, f"{folder}/setup.py")
    folders, entries = [folder], [setup] if setup is not None and not setup.is_binary else []
    if pyproject is not None and pyproject.is_whole:
        backend, path = task_lists.build_backend(pyproject.text)
        folders = [*(absolute(place, folder) for place in path), folder]
        if path:
            own = python_files.module_file(walk, backend.partition(":")[0], folders)
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
        starts = (number for number, arg in enumerate(args) if arg == "-m" or (number and arg[:1] != "-"))
        place = next(starts, len(args))
        follow(walk, Call("python", args[place:], None, Arg("python")))


def _cargo(walk: Walk, call: Call) -> None:
    words = [str(arg) for arg in call.args if arg[:1] != "-"]
    if not words or words[0] not in _WORDS.cargo_builds:
        return
    _listed(walk, Call(call.name, [], None, call.program))
    manifest = first_file(walk, ("Cargo.toml",))
    builds = re.findall(r"(?m)^build\s*=\s*\"([^\"]+)\"", manifest.text) if manifest is not None else []
    for name in ("build.rs", *builds, "src/main.rs", "src/lib.rs"):
        source = first_file(walk, (name,))
        if source is not None and (source.is_new or name in ("build.rs", *builds)):
            judge_code(walk, call, source, "c")
    if words[0] in ("run", "test", "r", "t"):
        _tests(walk, call)


def _go(walk: Walk, call: Call) -> None:
    words = [str(arg) for arg in call.args if arg[:1] != "-"]
    if words[:1] == ["generate"]:
        for source in _collected(walk, ["."], lambda path: path.endswith(".go")):
            for text in re.findall(r"(?m)^//go:generate\s+(.+)$", source.text):
                run_words(walk, source, shell_words(text))
    elif words[:1] and words[0] in ("run", "test", "build", "install"):
        _tests(walk, Call(call.name, [Arg(word.removesuffix("/...")) for word in words[1:2]], None, call.program))


def follow_git(walk: Walk, call: Call) -> None:
    start, options = skip_options(call.args, "Cc", "git-dir work-tree namespace exec-path config-env")
    if start >= len(call.args):
        return
    folder = next((str(value) for option, value in options if option == "-C" and value), ".")
    top, git = _repository(walk, absolute(folder, here(walk)))
    source = lookup(walk, f"{git}/config") if git else None
    settings = _settings(source) if source is not None else {}
    command, rest = str(call.args[start]), call.args[start + 1 :]
    given = (value.partition("=") for option, value in options if option == "-c" and value)
    settings |= {key.lower(): value for key, _, value in given if key.lower() in ("core.hookspath", "include.path")}
    if (more := lookup(walk, settings.get("include.path", ""), runs=False)) is not None:
        source, settings = source or more, _settings(more) | settings
    for variable in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG"):
        stored = walk.lookup(variable)
        if isinstance(stored, Value) and stored.text and (more := lookup(walk, stored.text)) is not None:
            source, settings = source or more, settings | _settings(more)
    for folder in (str(value) for option, value in options if option == "--exec-path" and value):
        follow(walk, Call(f"git-{command}", rest, None, Arg(f"{folder}/git-{command}")))
    alias = settings.get(f"alias.{command.lower()}")
    if alias is not None and source is not None:
        words = " ".join(map(shell_quoted, rest))
        text = f"{alias[1:]} {words}" if alias.startswith("!") else f"git {alias} {words}"
        run_line(walk, source, text, cwd=top)
        return
    if source is not None:
        for name, value in settings.items():
            often = _TABLES["settings"].get(name, "")
            is_run = command in often.split() and value not in ("true", "false", "")
            may_be = not often and not name.startswith("alias.") and not value.startswith("git-lfs")
            if is_run or (may_be and names_command(name, value)):
                run_line(walk, source, value.lstrip("!"), cwd=top)
    if git and "--no-verify" not in rest and not (command == "commit" and "-n" in rest):
        hooks = settings.get("core.hookspath")
        place = absolute(hooks, top) if hooks else f"{git}/hooks"
        run = [str(arg) for arg in rest[1:2]] if command == "hook" and rest[:1] == ["run"] else []
        for hook in (*_TABLES["hooks"].get(command, "").split(), *run):
            path = Arg(f"{place}/{hook}")
            follow(walk, Call(hook, [], None, path))


def _repository(walk: Walk, folder: str) -> tuple[str, str]:
    """The work tree around a folder, and where its settings and hooks are."""
    sources = walk.sources
    assert sources is not None
    for _ in range(_MAX_PARENTS):
        if not folder or folder == "/":
            break
        found = sources.entry(f"{folder}/.git")
        if found is not None and found.is_dir:
            return folder, found.path
        if found is not None:  # a worktree or submodule: `gitdir: path`
            text = sources.start(found.path, 4096).decode("utf-8", "replace")
            path = absolute(text.partition("gitdir:")[2].strip(), folder)
            common = sources.start(f"{path}/commondir", 4096).decode("utf-8", "replace").strip()
            return folder, absolute(common, path) if common else path
        folder = posixpath.dirname(folder)
    return "", ""


def _settings(source: Source) -> dict[str, str]:
    found: dict[str, str] = {}
    section = ""
    for line in source.text.replace("\\\n", "").split("\n"):
        if match := _RE.section.match(line):
            section = ".".join(filter(None, (match[1].lower(), match[2])))
            line = match[3]
        if (match := _RE.setting.match(line)) and not line.lstrip().startswith(("#", ";")):
            found[f"{section}.{match[1].lower()}"] = _value(match[2])
    return found


def _value(text: str) -> str:
    """Quotes and escapes of git's own."""
    text = text.strip()
    if '"' in text:
        text = re.sub(r'(?<!\\)"', "", text)
    elif match := re.search(r"\s[#;]", text):
        text = text[: match.start()]
    return text.replace('\\"', '"').replace("\\\\", "\\").strip()
