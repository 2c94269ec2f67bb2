"""What the documentation shows is run in a fresh, non-editable installation: programs, and the commands in console blocks."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from .. import fork_server
from ..fork_server import Host
from .page_blocks import ROOT, programs

PRINTS = {
    "first_runtime.py": "unknown argument 'file'",
    "typed_tool.py": '"be": 2',
    "hooks.py": "secrets stay unread",
    "agent_loop.py": "['a.txt', 'b.txt', 'c.txt']",
    "session.py": "asked: rm -rf build\n0",
    "agent.py": "You wanted to buy milk.",
    "hermes_style_tool.py": "WEATHER_API_KEY is not set",
    "own_backend.py": "it conforms",
    "read_the_web.py": "A handrail is held while climbing them.",
    "drive_a_browser.py": 'heading "Hello Ada"',
    "use_a_key.py": "handrail-service-\nwelcome; you sent: Bearer ***********************",
    "code_calls_tools.py": "8 visits in 2 cities",
    "send_message.py": "the service got: Build - It is green.",
    "rollouts.py": "mean reward 1.0",
    "batch.py": "second done 1.0",
    "home_assistant.py": "the door is locked",
    "images_and_speech.py": "How many bars? 1568 1045 data:image/jpeg",
}
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])


def _commands() -> list[tuple[str, str]]:
    """Every `$ handrail ...` line of the console blocks, with the page it stands on."""
    found = []
    for page in PAGES:
        if "reference" in page.parts:
            continue
        for block in re.findall(r"```console\n(.*?)```", page.read_text(), re.DOTALL):
            commands = [line[2:] for line in block.splitlines() if line.startswith("$ ")]
            ours = [command for command in commands if re.search(r"(^|\| )(\.venv/bin/)?handrail ", command)]
            found += [(str(page.relative_to(ROOT)), command) for command in ours]
    return found


def _environment(home: Path, installed: Path) -> dict[str, str]:
    path = f"{installed}{os.pathsep}{os.environ['PATH']}"
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "LC_"))}
    more = {"EDITOR": "true", "VISUAL": "true", "NO_COLOR": "1", "LANG": "C.UTF-8"}
    return {**ours, **more, "HANDRAIL_HOME": str(home), "PATH": path}


def _loaded(installed: Path) -> Host:
    """The Python of the installation, after it has imported what is installed."""
    return Host(str(installed / "python"), source="")


@pytest.fixture(scope="session")
def forked(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose `handrail` is that of the installation, but for the import: most of the time of a command that is shown."""
    code, env = "import handrail; print(handrail.__file__, end='')", _environment(installed, installed)
    imported = fork_server.run("-c", code, cwd=installed, env=env, host=_loaded(installed))
    assert Path(imported.stdout).is_relative_to(installed.parent), "not what is installed"
    folder = tmp_path_factory.mktemp("forked")
    fork_server.program(folder / "handrail", "-m", "handrail", host=_loaded(installed))
    return folder


@pytest.mark.parametrize(("name", "code"), [pytest.param(*program, id=program[0]) for program in programs()])
def test_a_program_of_a_page_runs_and_shows_what_it_promises(
    name: str, code: str, tmp_path: Path, installed: Path
) -> None:
    (folder := tmp_path / "work").mkdir()
    (program := tmp_path / name).write_text(code)
    env = _environment(tmp_path / "home", installed)
    run = fork_server.run(str(program), cwd=folder, env=env, host=_loaded(installed))
    assert run.returncode == 0, run.stderr
    assert PRINTS[name] in run.stdout


def test_no_page_includes_a_file_that_a_reader_on_the_web_would_not_see() -> None:
    assert {name for name, _ in programs()} == set(PRINTS)
    assert [str(page) for page in PAGES if "--8<--" in page.read_text()] == []


@pytest.mark.parametrize(("page", "command"), _commands())
def test_a_command_of_the_documentation_works_as_typed(page: str, command: str, tmp_path: Path, forked: Path) -> None:
    command = command.replace(".venv/bin/handrail", "handrail")
    run = subprocess.run(
        ["bash", "-c", command],
        cwd=ROOT,
        env=_environment(tmp_path, forked),
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    usual = (2,) if "file=README.md" in command else (0, 3, 4) if command.startswith("handrail check") else (0,)
    assert run.returncode in usual, f"{page}: {command}\n{run.stdout}\n{run.stderr}"


def test_the_tutorial_about_undo_works_from_the_first_line_to_the_last(tmp_path: Path, installed: Path) -> None:
    page = (ROOT / "docs/tutorial/undo.md").read_text()
    blocks = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    lines = [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]
    run = subprocess.run(
        ["bash", "-ec", "\n".join(lines)],
        cwd=tmp_path,
        env=_environment(tmp_path / "home", installed),
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    assert run.returncode == 0, run.stderr
    assert "do not lose me\nprice = 10\nstock = 10\n" in run.stdout
    assert "notes.txt.before-undo-" in run.stdout


def test_every_link_between_pages_leads_somewhere() -> None:
    """Also where the pages are read in the repository: the reference is made by `make docs`, so no page links to it."""
    for page in {*ROOT.glob("*.md"), *PAGES}:
        if "reference" in page.parts:
            continue
        for target, heading in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", page.read_text()):
            linked = page.parent / target if target else page
            where = f"{page.relative_to(ROOT)} links to {target}"
            assert linked.exists(), where
            assert "reference" not in linked.parts, where
            assert not heading or heading in _headings(linked), f"{where}#{heading}"


def _headings(page: Path) -> set[str]:
    """What the address of each heading ends with, on GitHub and on the website."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def test_the_session_that_the_readme_shows_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [block] = [
        block
        for block in re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
        if "handrail.session" in block
    ]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("hello")
    function = {"name": "read_file", "arguments": '{"path": "a.txt"}'}
    shown = {"messages": [], "reply": {"tool_calls": [{"id": "c1", "function": function}]}}
    exec(block, shown)  # what users copy
    assert "hello" in shown["messages"][0]["content"]  # type: ignore[index]
