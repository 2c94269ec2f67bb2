"""What holds for all file tools: any arguments give well-formed JSON, other files than local ones work, sizes, imports."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from handrail.core.builtin import registry
from handrail.errors import ToolFailed
from handrail.files.local import LocalFiles
from handrail.protocols import FileEntry, Files, FileStat
from handrail.testing import OpenGate
from handrail.tools.files import patch, read_file, search_files, write_file  # noqa: F401  register
from handrail.types import ToolContext

TOOLS = ("read_file", "write_file", "patch", "search_files")
# What models send by mistake, and what someone sends on purpose.
HOSTILE = [
    "",
    ".",
    "..",
    "/",
    "~",
    "~nobody-of-that-name/x",
    "a\0b",
    "\ud800",
    "a\udcffb",
    "x" * 300,
    "x/" * 3000,
    "loop",
    "loop/x",
    "dangling",
    "a b",
    "new\nline",
    "é日本",
    "\u202egnp.exe",
    "-rf",
    "*",
    "[",
    "(",
    "\\",
    "{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}",
    "*** Begin Patch\n*** Update File: \n*** End Patch",
    "*** Update File: \ud800\n-a\n+b",
    "*** Delete File: a\0b",
    "--- \n+++ \n@@ -1 +1 @@\n-a\n+b",
    "@@ -99999999999999999999 +1 @@\n-a\n+b",
    "a.txt",
]
ANYTHING = st.one_of(
    st.sampled_from(HOSTILE),
    st.text(max_size=20),
    st.integers(),
    st.booleans(),
    st.none(),
    st.lists(st.text(), max_size=2),
)
NAMES = st.sampled_from(
    "path content mode old_string new_string replace_all patch pattern target file_glob limit offset output_mode "
    "context column".split()
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.txt").write_text("a\n")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "dangling").symlink_to("nothing/here")
    return tmp_path


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tool=st.sampled_from(TOOLS), args=st.dictionaries(NAMES, ANYTHING))
def test_any_arguments_give_well_formed_json_and_never_a_bug(folder: Path, tool: str, args: dict[str, Any]) -> None:
    context = ToolContext(task_id="t", files=LocalFiles(cwd=str(folder), roots=[str(folder)]))
    check(tool, args, context)


@pytest.mark.parametrize("value", HOSTILE, ids=lambda value: ascii(value)[:40])
@pytest.mark.parametrize("name", ["path", "content", "old_string", "new_string", "patch", "pattern", "file_glob"])
def test_a_hostile_value_in_any_place_gives_a_clear_answer(folder: Path, name: str, value: str) -> None:
    context = ToolContext(task_id="t", files=LocalFiles(cwd=str(folder), roots=[str(folder)]))
    sane = {"path": "a.txt", "content": "x", "old_string": "a", "new_string": "b", "pattern": "a"}
    for tool in TOOLS:
        entry = registry.get_entry(tool)
        assert entry is not None
        taken = entry.schema["parameters"]["properties"]
        args = {key: given for key, given in {**sane, name: value}.items() if key in taken}
        check(tool, args, context)


def check(tool: str, args: dict[str, Any], context: ToolContext) -> None:
    answer = registry.dispatch(tool, args, context=context, gate=OpenGate())
    assert isinstance(answer, str)
    answer.encode()
    assert isinstance(json.loads(answer), dict)
    assert "Tool execution failed" not in answer  # that would be an exception that nobody expected
    entry = registry.get_entry(tool)
    assert entry is not None
    assert entry.resources is not None
    named = entry.resources(args, context)
    assert all(path.startswith("/") for path in named.reads + named.writes)


def test_a_circle_of_links_is_named_as_such(folder: Path) -> None:
    context = ToolContext(files=LocalFiles(cwd=str(folder)))
    for tool, args in [("read_file", {}), ("write_file", {"content": "x"}), ("search_files", {"pattern": "x"})]:
        assert "circle" in str(registry.dispatch(tool, {"path": "loop", **args}, context=context, gate=OpenGate()))


class MemoryFiles:
    """Files that exist nowhere but here, as those of another machine would: only the protocol leads to them."""

    max_read_bytes = 100

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = files
        self.versions = dict.fromkeys(files, 0)

    def resolve(self, path: str) -> str:
        return path if path.startswith("/") else f"/w/{path}" if path != "." else "/w"

    def host_path(self, path: str) -> str | None:
        return None

    def stat(self, path: str) -> FileStat | None:
        path = self.resolve(path)
        if path in self.files:
            data = self.files[path]
            return FileStat(len(data), is_dir=False, version=str(self.versions[path]), mode=stat.S_IFREG | 0o644)
        if any(name.startswith(path.rstrip("/") + "/") for name in self.files):
            return FileStat(0, is_dir=True, version="", mode=stat.S_IFDIR | 0o755)
        return None

    def entries(self, path: str) -> list[FileEntry]:
        base = self.resolve(path).rstrip("/") + "/"
        below = {name[len(base) :] for name in self.files if name.startswith(base)}
        folders = {name.split("/")[0] for name in below if "/" in name}
        return [FileEntry(name, is_dir=True, is_file=False) for name in folders] + [
            FileEntry(name, is_dir=False, is_file=True) for name in below if "/" not in name
        ]

    def read(self, path: str, *, max_bytes: int, offset: int = 0) -> bytes:
        return self.files[self.resolve(path)][offset : offset + min(max_bytes, self.max_read_bytes)]

    def write(self, path: str, data: bytes, *, mode: int | None = None) -> FileStat:
        path = self.resolve(path)
        if path.endswith("full.txt"):
            raise ToolFailed("the disk is full")
        self.files[path] = data
        self.versions[path] = self.versions.get(path, 0) + 1
        found = self.stat(path)
        assert found is not None
        return found

    def remove(self, path: str) -> None:
        self.files.pop(self.resolve(path), None)


def test_every_tool_reaches_files_by_the_protocol_alone() -> None:
    files = MemoryFiles({"/w/a.txt": b"one\ntwo\n", "/w/.gitignore": b"*.log\n", "/w/b.log": b"two\n"})
    as_protocol: Files = files
    context = ToolContext(task_id="memory", files=as_protocol)

    def call(tool: str, **args: Any) -> dict[str, Any]:
        return json.loads(str(registry.dispatch(tool, args, context=context, gate=OpenGate())))

    assert call("read_file", path="a.txt")["content"] == "one\ntwo\n"
    assert call("write_file", path="sub/c.txt", content="two\n" * 40)["created"] is True
    assert call("patch", path="a.txt", old_string="two", new_string="2")["files"][0]["path"] == "/w/a.txt"
    assert call("search_files", pattern="two", output_mode="count")["counts"] == [{"path": "sub/c.txt", "count": 40}]
    assert call("search_files", pattern="*.txt", target="files")["files"] == ["a.txt", "sub/c.txt"]
    assert call("read_file", path="sub/c.txt", offset=30, limit=2)["content"] == "two\ntwo\n"
    before = dict(files.files)
    failed = call(
        "patch", patch="*** Update File: a.txt\n-one\n+1\n*** Delete File: b.log\n*** Add File: full.txt\n+x\n"
    )
    assert failed["error"] == "the disk is full. Nothing was written."
    assert files.files == before


def test_the_four_definitions_are_small() -> None:
    definitions = registry.get_definitions(TOOLS)
    assert len(definitions) == len(TOOLS)
    assert len(json.dumps(definitions)) < 5000


def test_importing_the_tools_loads_nothing_that_only_their_calls_need() -> None:
    code = (
        "import sys; import handrail.core.builtin, handrail.tools.files; known = set(sys.modules);"
        "from handrail.tools.files import read_file, write_file, patch, search_files;"
        "print(*sorted(set(sys.modules) - known))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert loaded == [f"handrail.tools.files.{name}" for name in sorted(TOOLS)]
