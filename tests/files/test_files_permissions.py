"""What the file tools say and leave behind when the system forbids it. Root may do everything, so these are not root."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from handrail.core.builtin import registry
from handrail.files.local import LocalFiles
from handrail.testing import OpenGate
from handrail.tools.files import patch as patch_tool  # noqa: F401  register
from handrail.types import ToolContext

NOBODY = 65534


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that everyone may enter. pytest's own are closed to others, again at the start of every session."""
    with tempfile.TemporaryDirectory(prefix="handrail-test-") as name:
        Path(name).chmod(0o755)
        (Path(name) / "a").write_text("a")
        call("search_files", Path(name), pattern="a")  # what is imported late is imported with root's rights
        call("patch", Path(name), path="a", old_string="a", new_string="b")
        (Path(name) / "a").unlink()
        yield Path(name)


@contextlib.contextmanager
def as_nobody() -> Iterator[None]:
    """Run as someone without rights. Who is not root is that already."""
    if os.geteuid() != 0:
        yield
        return
    os.setegid(NOBODY)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


def call(name: str, folder: Path, **args: Any) -> dict[str, Any]:
    context = ToolContext(task_id="t", files=LocalFiles(cwd=str(folder)))
    return json.loads(str(registry.dispatch(name, args, context=context, gate=OpenGate())))


def everything(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_a_file_that_may_not_be_read_says_so(folder: Path) -> None:
    (folder / "secret").write_text("x")
    (folder / "secret").chmod(0)
    with as_nobody():
        answer = call("read_file", folder, path="secret")
    assert answer["error_type"] == "permission_denied"
    assert "permission denied" in answer["error"]


def test_a_folder_that_may_not_be_written_stays_as_it_was(folder: Path) -> None:
    locked = folder / "locked"
    locked.mkdir()
    (locked / "a.txt").write_text("old\n")
    locked.chmod(0o555)
    with as_nobody():
        answers = [
            call("write_file", folder, path="locked/a.txt", content="new"),
            call("write_file", folder, path="locked/deeper/b.txt", content="new"),
            call("patch", folder, path="locked/a.txt", old_string="old", new_string="new"),
        ]
    assert all("permission denied" in answer["error"] for answer in answers)
    assert everything(folder) == {"locked/a.txt": "old\n"}
    locked.chmod(0o755)


def test_a_read_only_file_in_a_folder_of_ones_own_is_not_replaced(folder: Path) -> None:
    mine = folder / "mine"
    mine.mkdir()
    mine.chmod(0o777)
    (mine / "a.txt").write_text("old\n")
    (mine / "a.txt").chmod(0o444)
    with as_nobody():
        answer = call("write_file", folder, path="mine/a.txt", content="new")
    assert "permission denied" in answer["error"]
    assert everything(folder) == {"mine/a.txt": "old\n"}


def test_a_patch_whose_second_file_cannot_be_written_undoes_the_first(folder: Path) -> None:
    mine, locked = folder / "mine", folder / "locked"
    for place in (mine, locked):
        place.mkdir()
        (place / "a.txt").write_text("old\n")
        (place / "a.txt").chmod(0o666)
    mine.chmod(0o777)
    locked.chmod(0o555)
    patch = (
        "*** Begin Patch\n*** Update File: mine/a.txt\n-old\n+new\n*** Add File: mine/made/for/it.txt\n+x\n"
        "*** Update File: locked/a.txt\n-old\n+new\n*** End Patch\n"
    )
    with as_nobody():
        answer = call("patch", folder, mode="patch", patch=patch)
    locked.chmod(0o755)
    assert "permission denied" in answer["error"]
    assert "Nothing was written" in answer["error"]
    assert everything(folder) == {"mine/a.txt": "old\n", "locked/a.txt": "old\n"}
    assert not (mine / "made").exists()


def test_a_file_that_cannot_be_removed_undoes_what_was_written(folder: Path) -> None:
    locked = folder / "locked"
    locked.mkdir()
    (locked / "a.txt").write_text("old\n")
    (folder / "mine").mkdir()
    (folder / "mine").chmod(0o777)
    locked.chmod(0o555)
    with as_nobody():
        moved = "*** Update File: locked/a.txt\n*** Move to: mine/a.txt\n-old\n+new\n"
        answer = call("patch", folder, mode="patch", patch=moved)
    locked.chmod(0o755)
    assert "cannot remove" in answer["error"]
    assert everything(folder) == {"locked/a.txt": "old\n"}


def test_a_folder_that_may_not_be_listed_says_so_and_inside_of_a_search_is_passed_over(folder: Path) -> None:
    (folder / "closed").mkdir()
    (folder / "closed" / "a.txt").write_text("needle")
    (folder / "b.txt").write_text("needle")
    (folder / "closed").chmod(0)
    with as_nobody():
        direct = call("search_files", folder, pattern="needle", path="closed")
        around = call("search_files", folder, pattern="needle")
    (folder / "closed").chmod(0o755)
    assert "permission denied" in direct["error"]
    assert [match["path"] for match in around["matches"]] == ["b.txt"]
