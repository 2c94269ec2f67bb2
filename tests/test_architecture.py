"""The shape of the house: sizes, layers, and what a start costs."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "handrail"
MODULES = sorted(SOURCE.rglob("*.py"))
MAX_LINES = 420
MAX_FUNCTION_LINES = 60
LONG_REASON = "This file is longer than the others on purpose."
"""In the docstring of a module that is one object; the reason follows."""
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


@pytest.mark.parametrize("path", MODULES, ids=_name)
def test_a_module_fits_on_a_few_screens_and_says_what_it_answers(path: Path) -> None:
    text = path.read_text()
    tree = ast.parse(text)
    assert text.count("\n") <= MAX_LINES or LONG_REASON in (ast.get_docstring(tree) or "")
    assert ast.get_docstring(tree), "a module answers one question, and its docstring is the answer"
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.body[0].lineno + 1
            assert length <= MAX_FUNCTION_LINES, f"{node.name} has {length} lines"


@pytest.mark.parametrize("path", sorted((SOURCE / "tools").glob("*_tool.py")), ids=_name)
def test_no_tool_imports_a_tool(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom):
            names = [node.module or "", *(alias.name for alias in node.names)]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        assert not [name for name in names if name.split(".")[-1].endswith("_tool")]


def test_a_cold_start_imports_few_modules_and_nothing_heavy(tmp_path: Path) -> None:
    loaded = _in_new_python(COLD_START + "\nimport sys; print(*sys.modules)", tmp_path).split()
    heavy = {
        "pydantic",
        "pluggy",
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
    assert len(loaded) <= 250


def test_importing_does_nothing_to_the_disk(tmp_path: Path) -> None:
    code = "import handrail, handrail.model_tools, handrail.core.registry; print(len(handrail.__all__))"
    assert int(_in_new_python(code, tmp_path)) > 0
    assert list(tmp_path.iterdir()) == []


def test_every_public_name_can_be_had_from_the_package() -> None:
    import handrail

    for name in handrail.__all__:
        assert getattr(handrail, name) is not None


def test_broad_excepts_carry_their_reason() -> None:
    for path in MODULES:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if "noqa: BLE001" in line:
                reason = line.split("noqa: BLE001", 1)[1].strip()
                assert len(reason) > 10, f"{_name(path)}:{number} suppresses without saying why"
