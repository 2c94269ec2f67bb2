"""What `write_file` leaves on the disk."""

from __future__ import annotations

import json
import os
import resource
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from handrail.core.builtin import registry
from handrail.files.local import LocalFiles
from handrail.files.text import MAX_DIFF_CHARS
from handrail.testing import OpenGate
from handrail.tools.files import read_file, write_file  # noqa: F401  register the tools
from handrail.types import ToolContext


def call(
    name: str, folder: Path, *, task: str = "t", limits: dict[str, Any] | None = None, **args: Any
) -> dict[str, Any]:
    context = ToolContext(task_id=task, files=LocalFiles(cwd=str(folder), **(limits or {})))
    return json.loads(str(registry.dispatch(name, args, context=context, gate=OpenGate())))


def write(folder: Path, path: str, content: str, **more: Any) -> dict[str, Any]:
    return call("write_file", folder, path=path, content=content, **more)


def test_a_new_file_is_made_with_its_folders(tmp_path: Path) -> None:
    answer = write(tmp_path, "a/b/c.txt", "hello\n")
    assert (tmp_path / "a/b/c.txt").read_bytes() == b"hello\n"
    assert answer == {"path": str(tmp_path / "a/b/c.txt"), "bytes_written": 6, "created": True}


def test_a_new_file_gets_the_mode_that_the_umask_leaves(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write(tmp_path, "a.txt", "x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == 0o640


def test_overwriting_keeps_the_mode_and_shows_the_diff(tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_text("echo old\nexit 0\n")
    script.chmod(0o750)
    answer = write(tmp_path, "run.sh", "echo new\nexit 0\n")
    assert script.read_text() == "echo new\nexit 0\n"
    assert stat.S_IMODE(script.stat().st_mode) == 0o750
    assert "-echo old\n+echo new\n" in answer["diff"]
    assert answer["created"] is False


def test_a_reader_with_the_file_open_still_sees_the_old_content(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("old")
    with (tmp_path / "a.txt").open() as reader:
        write(tmp_path, "a.txt", "new and longer")
        assert reader.read() == "old"


def test_a_file_that_was_never_read_is_overwritten_but_that_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("old")
    assert write(tmp_path, "a.txt", "new")["overwrote_unread"] is True
    assert "overwrote_unread" not in write(tmp_path, "a.txt", "newer")


def test_a_file_that_changed_since_it_was_read_is_left_alone(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    target.write_text("mine")
    call("read_file", tmp_path, path="a.txt")
    target.write_text("your")  # the same length, perhaps in the same tick of the clock
    answer = write(tmp_path, "a.txt", "new")
    assert answer["error_type"] == "tool_failed"
    assert answer["changed_since_read"] is True
    assert "read it again" in answer["error"]
    assert target.read_text() == "your"
    call("read_file", tmp_path, path="a.txt")
    assert "error" not in write(tmp_path, "a.txt", "new")


def test_a_file_that_was_only_touched_has_not_changed(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("mine")
    call("read_file", tmp_path, path="a.txt")
    os.utime(tmp_path / "a.txt", (1, 1))
    assert "error" not in write(tmp_path, "a.txt", "new")


def test_what_another_task_read_does_not_count(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("old")
    call("read_file", tmp_path, path="a.txt", task="one")
    (tmp_path / "a.txt").write_text("changed")
    assert write(tmp_path, "a.txt", "new", task="two")["overwrote_unread"] is True


def test_a_file_read_through_a_link_is_the_same_file(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("old")
    (tmp_path / "link").symlink_to("a.txt")
    call("read_file", tmp_path, path="link")
    (tmp_path / "a.txt").write_text("changed")
    assert write(tmp_path, "a.txt", "new")["changed_since_read"] is True


def test_crlf_stays_crlf(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"a\r\nb\r\n")
    answer = write(tmp_path, "a.txt", "a\nc\r\nd\n")
    assert (tmp_path / "a.txt").read_bytes() == b"a\r\nc\r\nd\r\n"
    assert answer["line_endings"] == "crlf"


def test_a_file_with_both_line_ends_takes_the_content_as_it_comes(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"a\r\nb\n")
    write(tmp_path, "a.txt", "x\ny\r\n")
    assert (tmp_path / "a.txt").read_bytes() == b"x\ny\r\n"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "latin-1"])
def test_the_encoding_is_kept(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "a.txt").write_bytes("un café noir\n".encode(encoding))
    answer = write(tmp_path, "a.txt", "un thé vert\n")
    assert (tmp_path / "a.txt").read_bytes() == "un thé vert\n".encode(encoding)
    assert answer["encoding"].startswith(encoding)


def test_text_that_the_old_encoding_cannot_carry_becomes_utf8(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("un café noir\n".encode("latin-1"))
    answer = write(tmp_path, "a.txt", "日本語\n")
    assert (tmp_path / "a.txt").read_text() == "日本語\n"
    assert "encoding" not in answer


def test_a_mark_in_the_content_is_not_doubled(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfold")
    write(tmp_path, "a.txt", "\ufeffnew")
    assert (tmp_path / "a.txt").read_bytes() == b"\xef\xbb\xbfnew"


def test_a_link_is_followed_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "target.txt").write_text("old")
    (tmp_path / "link").symlink_to("target.txt")
    (tmp_path / "dangling").symlink_to("made.txt")
    write(tmp_path, "link", "new")
    write(tmp_path, "dangling", "made")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target.txt").read_text() == "new"
    assert (tmp_path / "made.txt").read_text() == "made"


def test_a_link_out_of_the_roots_is_denied(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "link").symlink_to(tmp_path / "outside.txt")
    (inside / "up").symlink_to(tmp_path)
    for path in ("link", "up/outside.txt", "../outside.txt"):
        assert write(inside, path, "x", limits={"roots": [str(inside)]})["error_type"] == "denied"
    assert not (tmp_path / "outside.txt").exists()


def test_a_folder_a_fifo_and_a_path_through_a_file_are_refused(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("x")
    os.mkfifo(tmp_path / "pipe")
    assert "is a folder" in write(tmp_path, "folder", "x")["error"]
    assert "FIFO" in write(tmp_path, "pipe", "x")["error"]
    assert "is a file, not a folder" in write(tmp_path, "file/below.txt", "x")["error"]
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "folder", "pipe"]


def test_a_disk_that_takes_no_more_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("old")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        answers = [write(tmp_path, path, "x" * 5000) for path in ("a.txt", "new/folders/b.txt")]
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert all("larger than the system allows" in answer["error"] for answer in answers)
    assert [path.name for path in tmp_path.rglob("*")] == ["a.txt"]
    assert (tmp_path / "a.txt").read_text() == "old"


def test_content_over_the_limit_is_refused(tmp_path: Path) -> None:
    answer = write(tmp_path, "a.txt", "x" * 101, limits={"max_write_bytes": 100})
    assert "the limit is 100 bytes" in answer["error"]
    assert list(tmp_path.iterdir()) == []


def test_the_diff_of_a_big_change_is_bounded(tmp_path: Path) -> None:
    for count in (1000, 5000):
        (tmp_path / "a.txt").write_text("".join(f"old {n}\n" for n in range(count)))
        answer = write(tmp_path, "a.txt", "".join(f"new {n}\n" for n in range(count)), task=str(count))
        assert len(answer["diff"]) <= MAX_DIFF_CHARS + 100
        assert answer["diff"].endswith("]")


def test_the_same_content_again_is_said_to_be_the_same(tmp_path: Path) -> None:
    write(tmp_path, "a.txt", "x\n")
    assert "same" in write(tmp_path, "a.txt", "x\n")["notice"]


def test_half_a_character_is_refused(tmp_path: Path) -> None:
    answer = write(tmp_path, "a.txt", "ab\ud800")
    assert answer["error_type"] == "invalid_arguments"
    assert "lone surrogate" in answer["error"]
    assert list(tmp_path.iterdir()) == []


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.text(st.characters(exclude_categories=["Cs"]), max_size=200))
def test_what_was_written_is_what_is_read(tmp_path: Path, content: str) -> None:
    path = tmp_path / "round.txt"
    path.unlink(missing_ok=True)
    assert "error" not in write(tmp_path, "round.txt", content)
    assert path.read_bytes() == content.encode()
    if "\0" not in content and not content.startswith("\ufeff"):
        assert call("read_file", tmp_path, path="round.txt")["content"] == content


@pytest.mark.parametrize(
    ("name", "broken", "fine"),
    [
        ("a.py", "def f(:\n    pass\n", "def f():\n    pass\n"),
        ("a.json", '{"a": }', '{"a": 1}'),
        ("a.yaml", "a: [1\nb: 2\n", "a: [1]\nb: 2\n"),
        ("a.toml", "a = \n", "a = 1\n"),
    ],
)
def test_syntax_errors_of_what_was_written_are_reported(tmp_path: Path, name: str, broken: str, fine: str) -> None:
    assert "line" in write(tmp_path, name, broken)["syntax_error"]
    assert (tmp_path / name).read_text() == broken
    assert "syntax_error" not in write(tmp_path, name, fine)
    assert "syntax_error" not in write(tmp_path, "a.txt", broken)
