"""The programs of the page about frameworks, as a reader copies them."""

from __future__ import annotations

from pathlib import Path

import pytest

from handrail.protocols import ModelReply
from handrail.testing import call

from ..docs.page_blocks import programs
from .conftest import started, with_entry_points

PAGE = dict(programs(of_frameworks=True))
MAX_LINES = 15


def test_every_framework_has_a_short_program() -> None:
    assert set(PAGE) == {
        f"with_{name}.py"
        for name in ("openai_agents", "pydantic_ai", "langchain", "smolagents", "inspect", "inspect_sandbox")
    }
    assert {name: lines for name, code in PAGE.items() if (lines := _lines(code)) > MAX_LINES} == {}


@pytest.mark.parametrize("title", PAGE)
def test_a_program_of_the_page_runs_and_a_yes_removes_the_folder(title: str, tmp_path: Path, home: Path) -> None:
    framework = title.removeprefix("with_").removesuffix(".py")
    is_sandbox = framework == "inspect_sandbox"
    framework = "inspect" if is_sandbox else framework
    (work := tmp_path / "work").mkdir()
    (work / "build").mkdir()
    (work / "notes.txt").write_text("buy milk\n")
    (program := tmp_path / title).write_text(PAGE[title])
    calls = [call("bash", command="cat notes.txt") if is_sandbox else call("read_file", path="notes.txt")]
    env = {"PYTHONPATH": with_entry_points(tmp_path)} if is_sandbox else {}
    if framework != "inspect":  # whose page only reads
        calls.append(call("terminal", command="rm -rf build"))
    done = ModelReply("", [call("final_answer", answer="Done.")]) if framework == "smolagents" else ModelReply("Done.")
    script = [*(ModelReply("", [each]) for each in calls), done]
    printed, requests = started(framework, program, work, home, script, stdin="y\n", env=env)
    assert "Done." in printed
    assert "buy milk" in str(requests)
    assert (work / "build").exists() is (framework == "inspect")


def _lines(code: str) -> int:
    return sum(1 for line in code.splitlines() if line.strip())
