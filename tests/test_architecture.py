"""The shape of the house: sizes, layers, and what a start costs."""

from __future__ import annotations

import ast
import contextlib
import functools
import os
import pkgutil
import pty
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import pathspec
import pytest

from . import import_graph
from .import_graph import SOURCE

ROOT = SOURCE.parent.parent
MODULES = sorted(SOURCE.rglob("*.py"))
MAX_LINES = 420
MAX_FUNCTION_LINES = 60
LONG_REASON = "This file is longer than the others on purpose."
"""In the docstring of a module that is one object; the reason follows."""
# What the documentation imports from; everything else may change.
FACES = "handrail handrail.approval handrail.environments handrail.agent handrail.testing handrail.plugins handrail.judge".split()
DOCUMENTED = (
    "handrail.tools.registry handrail.tools.approval handrail.tools.environments handrail.tools.terminal_tool "
    "handrail.tools.mcp_tool handrail.model_tools handrail.toolsets handrail.errors handrail.adapters.openai_agents "
    "handrail.adapters.pydantic_ai handrail.adapters.langchain handrail.adapters.smolagents handrail.adapters.inspect"
).split()
MAX_LATE_IMPORTS_PER_1000_LINES = 6
# During one call of the terminal that asks.
MAX_FILES_OF_A_CALL = 90
MAX_MODULES_OF_A_START = 245
# Folders of tests that are about the whole, and tests about the repository itself.
WHOLE = {"contract", "docs", "e2e", "fuzz", "services"}
ABOUT_THE_REPOSITORY = {
    "architecture",
    "by_turns",
    "documented_names",
    "fork_server",
    "package",
    "recipes",
    "setup_scripts",
}
# Names that say when something happens instead of what it is, and a second word for MAX_ and POLL_.
MADE_BY_RECIPES = r"dice|nice|deployment|audit|hello|notebook|parrot|^tool.py$|_\*"
OLD_WORDS = re.compile(r"\b_?(?:MOST|LONGEST|LARGEST)_\w+|\b_?LOOK_SECONDS\b")
NOQA = re.compile(r"#\s*noqa(?::\s*[A-Z]+\d+(?:\s*,\s*[A-Z]+\d+)*)?(?P<reason>.*)")
CALL = """
import inspect, os, sys, threading
import handrail
from handrail.cli.app import run

package, ran = os.path.dirname(handrail.__file__) + os.sep, set()

def note(frame, event, _):
    code = frame.f_code
    is_function = code.co_flags & inspect.CO_OPTIMIZED and not code.co_name.endswith(("comp>", "genexpr>"))
    if event == "call" and is_function and code.co_filename.startswith(package):
        ran.add(code.co_filename[len(package):])

threading.setprofile(note)
sys.setprofile(note)
try:
    run(["call", "terminal", "command=rm -rf build"])
finally:
    sys.setprofile(None)
    with open(sys.argv[1], "w") as out:
        out.write("\\n".join(sorted(ran)))
"""
COLD_START = """
from handrail.model_tools import get_tool_definitions, handle_function_call
assert get_tool_definitions(quiet_mode=True)
handle_function_call("read_file", {"path": "/proc/nowhere"})
"""


def _name(path: Path) -> str:
    return str(path.relative_to(SOURCE))


def _in_new_python(code: str, home: Path) -> str:
    env = {**os.environ, "HANDRAIL_HOME": str(home)}
    return subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True).stdout


class _Module(NamedTuple):
    """What the tests ask about a module."""

    name: str
    text: str
    docstring: str
    function_lines: dict[str, int]
    handler_calls: int
    reads_configuration: bool


@functools.cache
def _modules() -> tuple[_Module, ...]:
    return tuple(_read(path) for path in MODULES)


def _read(path: Path) -> _Module:
    text = path.read_text()
    tree = ast.parse(text)
    lengths, handler_calls, reads = {}, 0, False
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lengths[f"{node.name}, line {node.lineno}"] = (node.end_lineno or node.lineno) - node.body[0].lineno + 1
        elif isinstance(node, ast.Call):
            handler_calls += sum(_is_handler(part, node) for part in (node.func, *node.args[:1]))
            reads |= "load_config" in (getattr(node.func, "id", ""), getattr(node.func, "attr", ""))
    return _Module(_name(path), text, ast.get_docstring(tree) or "", lengths, handler_calls, reads)


def _is_handler(node: ast.expr, call: ast.Call) -> bool:
    """`entry.handler(...)` or `partial(entry.handler, ...)`, but for the HTTP server's endpoints."""
    if not (isinstance(node, ast.Attribute) and node.attr == "handler"):
        return False
    runs_it = node is call.func or (isinstance(call.func, ast.Name) and call.func.id == "partial")
    return runs_it and getattr(node.value, "id", "") != "endpoint"


def test_a_module_fits_on_a_few_screens() -> None:
    modules = _modules()
    long = {module.name: module.text.count("\n") for module in modules if LONG_REASON not in module.docstring}
    assert {name: lines for name, lines in long.items() if lines > MAX_LINES} == {}
    assert [
        f"{module.name}: {function} has {lines} lines"
        for module in modules
        for function, lines in module.function_lines.items()
        if lines > MAX_FUNCTION_LINES
    ] == []


def test_a_module_answers_one_question_and_its_docstring_is_the_answer() -> None:
    assert [module.name for module in _modules() if not module.docstring] == []


def test_a_cold_start_imports_few_modules_and_nothing_heavy(tmp_path: Path) -> None:
    loaded = _in_new_python(COLD_START + "\nimport sys; print(*sys.modules)", tmp_path).split()
    heavy = {
        "pydantic",
        "typer",
        "rich",
        "ruamel",
        "platformdirs",
        "pathspec",
        "regex",
        "pyte",
        "docstring_parser",
        "sqlite3",
    }
    assert not heavy.intersection(name.split(".")[0] for name in loaded)
    assert len(loaded) <= MAX_MODULES_OF_A_START


def test_importing_does_nothing_to_the_disk(tmp_path: Path) -> None:
    code = "import handrail, handrail.model_tools, handrail.core.registry; print(len(handrail.__all__))"
    assert int(_in_new_python(code, tmp_path)) > 0
    assert list(tmp_path.iterdir()) == []


def test_every_public_name_can_be_had_from_the_package() -> None:
    import handrail

    for name in handrail.__all__:
        assert getattr(handrail, name) is not None


def _suppressions(folder: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(folder.rglob("*.py")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            found = NOQA.search(line)
            if found and path != Path(__file__):
                yield f"{path.relative_to(ROOT)}:{number}", found["reason"].strip()


@pytest.mark.parametrize("folder", ["src", "tests", "scripts", "bench"])
def test_every_suppression_has_its_reason_beside_it(folder: str) -> None:
    assert [place for place, reason in _suppressions(ROOT / folder) if len(reason) < 8] == []


def test_no_module_imports_itself_by_way_of_others() -> None:
    """Type-only imports count: what a module's types name, its reader has to know."""
    edges = import_graph.graph()
    assert len(edges) > 500
    assert import_graph.cycles(edges) == []
    assert import_graph.cycles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"c"}}) == ["b", "c"]


def test_imports_are_at_the_top_of_the_file() -> None:
    known = import_graph.modules()
    late = {
        (name, each.line)
        for name, path in known.items()
        for each in import_graph.imports(name, path)
        if each.in_function
    }
    lines = sum(module.text.count("\n") for module in _modules())
    assert 1000 * len(late) / lines <= MAX_LATE_IMPORTS_PER_1000_LINES


def test_tool_families_know_nothing_of_each_other() -> None:
    """The contract of import-linter says so too, for families with an `__init__.py`."""
    for name, path in import_graph.modules().items():
        family = name.split(".")[2] if name.startswith("handrail.tools.") and path.parent != SOURCE / "tools" else ""
        for each in import_graph.imports(name, path) if family else ():
            if each.imported.startswith("handrail.tools."):
                assert each.imported.split(".")[2] == family, f"{name} imports {each.imported}"


def test_one_place_calls_the_handler_of_a_tool() -> None:
    assert {module.name: module.handler_calls for module in _modules() if module.handler_calls} == {
        "runtime/call_path.py": 1
    }


def test_the_configuration_is_read_by_the_application_object_and_the_command_line_only() -> None:
    callers = {module.name for module in _modules() if module.reads_configuration}
    # Where it is defined, and what became weaker is held back: the application object reads it through that.
    allowed = {"config/store.py"}
    assert allowed <= callers
    assert {name for name in callers - allowed if not name.startswith("cli/")} == set()


@pytest.mark.parametrize("name", FACES)
def test_a_face_shows_its_names_and_none_of_them_is_a_module_of_it(name: str) -> None:
    """A module that is imported becomes an attribute of its package: the name would mean one or the other."""
    face = import_module(name)
    assert face.__doc__
    assert set(face.__all__) <= set(dir(face))
    assert set(face.__all__).isdisjoint(module.name for module in pkgutil.iter_modules(face.__path__))


@pytest.mark.parametrize("name", [face for face in FACES if face != "handrail.judge"])
def test_a_type_checker_finds_every_name_of_a_face(name: str) -> None:
    """It takes `from .app import Handrail as Handrail` in the stub for a name that others may import."""
    face = import_module(name)
    lines = [line.split() for line in Path(f"{face.__file__}i").read_text().splitlines() if line.startswith("from ")]
    assert [line[3] for line in lines if line[4:] != ["as", line[3]]] == []
    assert {line[3] for line in lines} | {"__version__"} >= set(face.__all__)


def _code_of_pages() -> Iterator[tuple[str, str]]:
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        if "reference" not in path.parts:
            for block in re.findall(r"^```python.*?\n(.*?)^```", path.read_text(), re.DOTALL | re.MULTILINE):
                yield str(path.relative_to(ROOT)), block


def test_documentation_imports_from_public_faces_only() -> None:
    wrong, seen = [], 0
    for place, code in _code_of_pages():
        for module in re.findall(r"^\s*(?:from|import) (handrail(?:\.[\w.]+)?)\b(?!_)", code, re.MULTILINE):
            seen += 1
            if module not in (*FACES, *DOCUMENTED):
                wrong.append(f"{place}: {module}")
    assert seen > 20
    assert wrong == []


@pytest.mark.parametrize("target", ["wheel", "sdist"])
def test_every_file_of_the_package_is_packaged(target: str) -> None:
    """Hatch leaves out what git ignores, unless it is an artifact: the console, which is built and not in git."""
    rules = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"][target]
    ignored = pathspec.GitIgnoreSpec.from_lines((ROOT / ".gitignore").read_text().splitlines())
    artifacts, excluded = (pathspec.GitIgnoreSpec.from_lines(rules.get(key, [])) for key in ("artifacts", "exclude"))
    assert "src" in rules.get("include", ["src"])
    assert rules.get("packages", ["src/handrail"]) == ["src/handrail"]
    console = "src/handrail/serve/console/index.html"
    assert ignored.match_file(console)
    files = [str(path.relative_to(ROOT)) for path in SOURCE.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    left_out = [
        path
        for path in [*files, console]
        if excluded.match_file(path) or (ignored.match_file(path) and not artifacts.match_file(path))
    ]
    assert left_out == []
    assert any(path.endswith(".sql") for path in files)


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_every_path_that_a_page_names_exists(page: str) -> None:
    text = re.sub(r"```.*?```", "", (ROOT / page).read_text(), flags=re.DOTALL)
    named = set(re.findall(r"`([\w.-]+(?:/[\w.*-]*)+|[\w-]+\.(?:py|md|toml))(?:\.\w+)?`", text))
    roots = (ROOT, SOURCE)
    made_up = {path for path in named if re.search(MADE_BY_RECIPES, path)} if page == "CONTRIBUTING.md" else set()
    missing = [path for path in named - made_up if not any(list(root.glob(path.rstrip("/"))) for root in roots)]
    assert len(named) > 10
    assert missing == []


def _is_named_after_a_module(path: Path) -> bool:
    """`test_registry.py` or `test_registry_collisions.py` beside which, in the package, there is `registry.py` or `registry/`;
    or the package itself: `test_judge_floor.py` in `judge/`."""
    folder, subject = path.parent.relative_to(ROOT / "tests"), path.stem.removeprefix("test_")
    mirrored = SOURCE / folder
    names = {each.stem for each in mirrored.glob("*") if each.suffix in ("", ".py")} | {folder.name}
    return any(subject == name or subject.startswith(f"{name}_") for name in names)


def test_the_tests_of_a_module_are_found_by_its_name() -> None:
    tests = sorted((ROOT / "tests").rglob("test_*.py"))
    about_modules = [
        path
        for path in tests
        if path.relative_to(ROOT / "tests").parts[0] not in WHOLE
        and not (path.parent == ROOT / "tests" and path.stem.removeprefix("test_") in ABOUT_THE_REPOSITORY)
    ]
    assert len(about_modules) > 200
    assert [str(path) for path in about_modules if not _is_named_after_a_module(path)] == []


def test_modules_are_named_after_objects() -> None:
    assert [str(path) for path in MODULES if re.fullmatch(r"[a-z]+ing", path.stem)] == []


def test_names_are_the_words_that_developers_know() -> None:
    found = {module.name: OLD_WORDS.findall(module.text) for module in _modules()}
    assert {name: words for name, words in found.items() if words} == {}


def test_a_call_that_asks_runs_through_few_files(tmp_path: Path) -> None:
    (tmp_path / "work" / "build").mkdir(parents=True)
    script, list_of_files = tmp_path / "call.py", tmp_path / "files.txt"
    script.write_text(CALL)
    env = {**os.environ, "HANDRAIL_HOME": str(tmp_path / "home"), "NO_COLOR": "1"}
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, str(script), str(list_of_files)],
        cwd=tmp_path / "work",
        env=env,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    ) as process:
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):  # Linux: the other side was closed
            while piece := os.read(ours, 65536):
                shown += piece
                if shown.endswith(b"instead? "):
                    os.write(ours, b"once\n")
    os.close(ours)
    assert process.returncode == 0, shown.decode()
    assert not (tmp_path / "work" / "build").exists()
    files = list_of_files.read_text().split()
    assert "runtime/call_path.py" in files
    assert len(files) <= MAX_FILES_OF_A_CALL, "\n".join(files)
