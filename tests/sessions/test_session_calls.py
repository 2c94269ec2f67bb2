"""What the calls of a session have changed can be listed, shown, taken back and brought back from Python."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import handrail
from handrail import Config, Handrail
from handrail.errors import CallNotFound

MCP_SERVER = """from mcp.server import MCPServer
from mcp.types import ToolAnnotations
server = MCPServer("s")
@server.tool()
def write() -> str:
    open("by-server", "w").close()
    return "written"
@server.tool(annotations=ToolAnnotations(readOnlyHint=True))
def look() -> str:
    return "seen"
server.run()
"""


@pytest.fixture
def app() -> Iterator[Handrail]:
    with Handrail(Config()) as made:
        yield made


async def test_a_session_shows_and_takes_back_its_own_calls_alone(app: Handrail, tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("one\n")
    async with handrail.session(app, cwd=tmp_path) as mine, handrail.session(app, cwd=tmp_path) as other:
        assert await mine.calls() == []
        with pytest.raises(CallNotFound):
            await mine.undo()
        await mine.call("terminal", {"command": "echo two >> a.txt"})
        await mine.call("write_file", {"path": "b.txt", "content": "b"})
        second, first = await mine.calls()
        assert (first.tool, second.tool) == ("terminal", "write_file")
        assert (await mine.effects(first.number, diff=True))["changed"][0]["diff"].endswith("+two")
        for method in (other.effects, other.undo, other.redo):
            with pytest.raises(CallNotFound, match="another session"):
                await method(first.number)
        assert (await mine.undo())["call"] == second.number
        assert (await mine.undo(first.number, dry_run=True))["status"] == "possible"
        assert (await mine.undo(first.number))["status"] == "undone"
        assert (file.read_text(), (tmp_path / "b.txt").exists()) == ("one\n", False)
        assert (await mine.redo(first.number))["status"] == "undone"
        assert file.read_text() == "one\ntwo\n"


def test_the_sync_twin_can_do_the_same(app: Handrail, tmp_path: Path) -> None:
    with handrail.session(app, cwd=tmp_path) as session:
        session.call("write_file", {"path": "b.txt", "content": "b"})
        (made,) = session.calls()
        assert session.effects(made.number)["created"][0]["path"] == str(tmp_path / "b.txt")
        assert session.undo()["status"] == "undone"
        assert session.redo(made.number)["status"] == "undone"
        assert (tmp_path / "b.txt").exists()


def test_with_mcp_servers_calls_can_be_taken_back_and_what_the_servers_do_is_not_covered(
    app: Handrail, tmp_path: Path
) -> None:
    script = tmp_path / "server.py"
    script.write_text(MCP_SERVER)
    servers = {"own": {"command": sys.executable, "args": [str(script)], "cwd": str(tmp_path)}}
    with handrail.session(app, cwd=tmp_path, mcp_servers=servers) as session:
        session.call("terminal", {"command": "echo x > made"})
        assert session.undo()["status"] == "undone"
        assert not (tmp_path / "made").exists()
        assert "seen" in session.call("mcp__own__look", {}).text
        assert "written" in session.call("mcp__own__write", {}).text
        last = session.calls()[0]
        assert (last.tool, last.head, last.coverage) == ("mcp__own__write", "own: write", "none")
        assert "not watched" in last.reason
        assert len(session.calls()) == 3
