"""What `read_file` gives of real files, and what it says when it cannot."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest

from handrail.core.builtin import registry
from handrail.files.local import LocalFiles
from handrail.tools.files import read_file  # noqa: F401  registers the tool
from handrail.tools.files.calls import MAX_PAGE_CHARS
from handrail.tools.files.calls import read_file as read_file_call
from handrail.types import CancelToken, ToolContext

TEN = "".join(f"line {number}\n" for number in range(1, 11))


def read(folder: Path, path: str, *, limits: dict[str, Any] | None = None, **args: Any) -> dict[str, Any]:
    context = ToolContext(task_id="t", files=LocalFiles(cwd=str(folder), **(limits or {})))
    answer = registry.dispatch("read_file", {"path": path, **args}, context=context)
    assert isinstance(answer, str)
    return json.loads(answer)


def test_a_whole_file_comes_back_to_the_letter(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(TEN)
    answer = read(tmp_path, "a.txt")
    assert answer["content"] == TEN
    assert answer["path"] == str(tmp_path / "a.txt")
    assert (answer["start_line"], answer["end_line"], answer["total_lines"]) == (1, 10, 10)
    assert answer["truncated"] is False
    assert "next_offset" not in answer


def test_pages_put_together_are_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(TEN + "no newline at the end")
    content, offset = "", 1
    while offset:
        answer = read(tmp_path, "a.txt", offset=offset, limit=3)
        content += answer["content"]
        offset = answer.get("next_offset", 0)
    assert content == TEN + "no newline at the end"


def test_an_offset_past_the_end_says_how_long_the_file_is(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(TEN)
    answer = read(tmp_path, "a.txt", offset=11)
    assert answer["error_type"] == "invalid_arguments"
    assert answer["total_lines"] == 10
    assert "offset 11 is past the end" in answer["error"]


def test_an_empty_file_says_that_it_is_empty(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    answer = read(tmp_path, "empty")
    assert (answer["content"], answer["total_lines"]) == ("", 0)
    assert "empty" in answer["notice"]


def test_a_missing_file_names_the_similar_ones(tmp_path: Path) -> None:
    (tmp_path / "README.md").touch()
    (tmp_path / "setup.py").touch()
    answer = read(tmp_path, "readme.md")
    assert answer["error_type"] == "not_found"
    assert answer["similar"] == ["README.md"]


def test_a_missing_folder_is_said_to_be_missing(tmp_path: Path) -> None:
    assert "no folder" in read(tmp_path, "nowhere/a.txt")["error"]


def test_a_folder_is_not_read_but_pointed_out(tmp_path: Path) -> None:
    answer = read(tmp_path, ".")
    assert "is a folder" in answer["error"]
    assert "`search_files`" in answer["error"]


def test_a_path_through_a_file_is_a_missing_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    assert "there is no file/below" in read(tmp_path, "file/below")["error"]


@pytest.mark.parametrize(
    ("content", "kind"),
    [(b"\x89PNG\r\n\x1a\n\0\0", "PNG image"), (b"\x7fELF\0\1", "ELF program or library"), (b"a\0b", "binary data")],
)
def test_a_binary_file_is_refused_with_its_kind_and_size(tmp_path: Path, content: bytes, kind: str) -> None:
    (tmp_path / "x.bin").write_bytes(content)
    answer = read(tmp_path, "x.bin")
    assert (answer["kind"], answer["size"]) == (kind, len(content))
    assert "content" not in answer


def test_a_fifo_is_refused_without_waiting_for_a_writer(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "FIFO" in read(tmp_path, "pipe")["error"]


def test_a_socket_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # a socket's path must be short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("s")
        assert "socket" in read(tmp_path, "s")["error"]


def test_a_device_is_refused(tmp_path: Path) -> None:
    assert "character device" in read(tmp_path, "/dev/zero")["error"]


def test_a_file_whose_size_the_system_does_not_tell_is_read_all_the_same(tmp_path: Path) -> None:
    assert "Name:" in read(tmp_path, "/proc/self/status")["content"]


@pytest.mark.parametrize(
    ("data", "content", "encoding"),
    [
        ("é\nx\n".encode("utf-16"), "é\nx\n", "utf-16-le"),
        ("é\n".encode("utf-8-sig"), "é\n", "utf-8-sig"),
        ("é\n".encode("utf-32"), "é\n", "utf-32-le"),
        ("un café noir\n".encode("latin-1"), "un café noir\n", "latin-1"),
        ("they said “no” twice\n".encode("cp1252"), "they said “no” twice\n", "cp1252"),
        ("naïve ünï".encode() + b"\xff", "naïve ünï\ufffd", "utf-8 with 1 invalid bytes"),
    ],
)
def test_text_that_is_not_utf8_is_decoded_and_the_encoding_told(
    tmp_path: Path, data: bytes, content: str, encoding: str
) -> None:
    (tmp_path / "a.txt").write_bytes(data)
    answer = read(tmp_path, "a.txt")
    assert (answer["content"], answer["encoding"]) == (content, encoding)


def test_bytes_that_only_might_be_latin1_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(bytes(range(1, 256)))
    assert "not text" in read(tmp_path, "x")["error"]


def test_crlf_is_kept_and_told(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"a\r\nb\r\n")
    answer = read(tmp_path, "a.txt")
    assert (answer["content"], answer["line_endings"], answer["total_lines"]) == ("a\r\nb\r\n", "crlf", 2)


def test_only_a_newline_ends_a_line(tmp_path: Path) -> None:
    text = "a\x0cb\u2028c\x85d\n"
    (tmp_path / "a.txt").write_text(text)
    answer = read(tmp_path, "a.txt")
    assert (answer["content"], answer["total_lines"]) == (text, 1)


def test_a_long_line_is_cut_with_a_notice_and_can_be_read_on(tmp_path: Path) -> None:
    line = "".join(f"<{number}>" for number in range(30_000))
    (tmp_path / "min.js").write_text(f"a\n{line}\nb\n")
    answer = read(tmp_path, "min.js")
    assert answer["cut_lines"] == [2]
    assert "[cut: " in answer["content"]
    assert answer["content"].endswith("\nb\n")
    content, column = "", 1
    while column:
        page = read(tmp_path, "min.js", offset=2, limit=1, column=column)["content"].removesuffix("\n")
        page = page.removeprefix(f"[from character {column}] ")
        text, _, notice = page.partition(" [cut: ")
        content += text
        column = int(notice.rpartition("column=")[2].rstrip("]")) if notice else 0
    assert content == line


def test_a_page_ends_at_a_line_before_it_grows_too_long(tmp_path: Path) -> None:
    (tmp_path / "wide.txt").write_text(("x" * 1900 + "\n") * 500)
    answer = read(tmp_path, "wide.txt")
    assert len(answer["content"]) <= MAX_PAGE_CHARS
    assert answer["next_offset"] == answer["end_line"] + 1
    assert read(tmp_path, "wide.txt", offset=answer["next_offset"])["start_line"] == answer["end_line"] + 1


def test_a_file_over_the_limit_is_paged_in_pieces(tmp_path: Path) -> None:
    lines = [f"line {number}: {'é' * (number % 7)}\n" for number in range(1, 5001)]
    (tmp_path / "big.log").write_text("".join(lines))
    answer = read(tmp_path, "big.log", limits={"max_read_bytes": 4096}, offset=4000, limit=3)
    assert answer["content"] == "".join(lines[3999:4002])
    assert (answer["start_line"], answer["end_line"], answer["next_offset"]) == (4000, 4002, 4003)
    assert "total_lines" not in answer
    assert "too large" in answer["notice"]


def test_the_end_of_a_file_over_the_limit_is_found(tmp_path: Path) -> None:
    (tmp_path / "big.log").write_text("x" * 50 + "\n" + "y\n" * 50 + "last")
    limits = {"max_read_bytes": 10}
    answer = read(tmp_path, "big.log", limits=limits, offset=51)
    assert (answer["content"], answer["truncated"]) == ("y\nlast", False)
    beyond = read(tmp_path, "big.log", limits=limits, offset=53)
    assert (beyond["error_type"], beyond["total_lines"]) == ("invalid_arguments", 52)


def test_a_binary_file_over_the_limit_is_refused_too(tmp_path: Path) -> None:
    (tmp_path / "big.bin").write_bytes(b"PK\x03\x04" + bytes(100))
    assert "ZIP" in read(tmp_path, "big.bin", limits={"max_read_bytes": 10})["error"]


def test_paging_a_large_file_can_be_cancelled(tmp_path: Path) -> None:
    (tmp_path / "big.log").write_text("y\n" * 500)
    cancel = CancelToken()
    cancel.cancel("enough")
    context = ToolContext(files=LocalFiles(cwd=str(tmp_path), max_read_bytes=10), cancel=cancel)
    answer = json.loads(str(registry.dispatch("read_file", {"path": "big.log", "offset": 400}, context=context)))
    assert answer["error_type"] == "cancelled"


def test_outside_of_the_roots_is_denied_and_the_roots_are_named(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "secret").write_text("x")
    (inside / "link").symlink_to(tmp_path / "secret")
    for path in ("../secret", "link", str(tmp_path / "secret"), "/etc/passwd", "~/x"):
        answer = read(inside, path, limits={"roots": [str(inside)]})
        assert answer["error_type"] == "denied", path
        assert answer["allowed_roots"] == [str(inside)]


def test_home_is_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "a.txt").write_text("hello")
    assert read(Path("/"), "~/a.txt")["content"] == "hello"


def test_without_a_context_the_working_directory_of_the_process_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("hello")
    assert json.loads(read_file_call({"path": "a.txt"}, context=ToolContext()))["content"] == "hello"


def test_a_working_directory_that_is_gone_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert "working directory no longer exists" in str(registry.dispatch("read_file", {"path": "a.txt"}))


def test_what_it_reads_is_declared_as_a_resolved_path(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    entry = registry.get_entry("read_file")
    assert entry is not None
    assert entry.resources is not None
    assert entry.resources({"path": str(tmp_path / "link")}, ToolContext()).reads == (str(tmp_path / "target"),)
    assert entry.resources({"path": "a\0b"}, ToolContext()).reads == ("/",)
