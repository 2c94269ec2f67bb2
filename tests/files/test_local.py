"""The files of this machine, and the roots that nothing leaves."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from handrail.errors import Denied, FileTooLarge, InvalidArguments, ToolFailed
from handrail.files.failures import os_failure
from handrail.files.local import LocalFiles
from handrail.protocols import Files


def test_it_is_what_the_protocol_asks_for(tmp_path: Path) -> None:
    files: Files = LocalFiles(cwd=str(tmp_path))
    assert files.stat("nothing") is None
    assert files.resolve("a/../b") == str(tmp_path / "b")


def test_every_method_holds_the_path_against_the_roots(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "secret").write_text("x")
    (inside / "link").symlink_to(tmp_path)
    files = LocalFiles(cwd=str(inside), roots=[str(inside)])
    for path in ("../secret", "link/secret", str(tmp_path / "secret"), str(inside) + "/../secret"):
        for use in (
            files.resolve,
            files.stat,
            files.entries,
            files.host_path,
            files.remove,
            lambda path: files.read(path, max_bytes=10),
            lambda path: files.write(path, b"y"),
        ):
            with pytest.raises(Denied, match="allowed"):
                use(path)
    assert (tmp_path / "secret").read_text() == "x"


def test_a_root_given_as_a_link_is_the_folder_behind_it(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "root").symlink_to("real")
    files = LocalFiles(cwd=str(tmp_path / "root"), roots=[str(tmp_path / "root")])
    files.write("a.txt", b"x")
    assert (tmp_path / "real/a.txt").read_bytes() == b"x"


def test_a_folder_that_only_begins_like_a_root_is_outside(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work-secret").mkdir()
    with pytest.raises(Denied):
        LocalFiles(cwd=str(tmp_path / "work"), roots=[str(tmp_path / "work")]).resolve("../work-secret/a")


@pytest.mark.parametrize("path", ["", "a\0b", "\ud800"])
def test_what_cannot_be_a_path_is_an_argument_error(path: str) -> None:
    with pytest.raises(InvalidArguments):
        LocalFiles().stat(path)


def test_reading_stops_at_the_limit_and_goes_on_from_an_offset(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"0123456789")
    files = LocalFiles(cwd=str(tmp_path), max_read_bytes=4)
    assert files.read("a", max_bytes=100) == b"0123"
    assert files.read("a", max_bytes=3, offset=8) == b"89"
    assert files.read("a", max_bytes=3, offset=10) == b""


def test_removing_takes_files_and_empty_folders_and_leaves_links_alone(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("file")
    files = LocalFiles(cwd=str(tmp_path))
    with pytest.raises(ToolFailed, match="links are left alone"):
        files.remove("link")
    files.remove("file")
    files.remove("folder")
    assert os.listdir(tmp_path) == ["link"]


def test_a_reader_never_sees_half_a_file(tmp_path: Path) -> None:
    files = LocalFiles(cwd=str(tmp_path))
    contents = [letter * 200_000 for letter in (b"a", b"b")]
    files.write("x", contents[0])
    stop = threading.Event()
    seen: set[bytes] = set()

    def look() -> None:
        while not stop.is_set():
            seen.add(files.read("x", max_bytes=1_000_000))

    reader = threading.Thread(target=look)
    reader.start()
    for round_number in range(30):
        files.write("x", contents[round_number % 2])
    stop.set()
    reader.join()
    assert seen <= set(contents)


def test_the_version_changes_with_the_file(tmp_path: Path) -> None:
    files = LocalFiles(cwd=str(tmp_path))
    versions = [files.write("x", content).version for content in (b"a", b"b", b"a")]
    assert len(set(versions)) == 3


def test_a_write_that_is_killed_leaves_nothing_in_the_tree(tmp_path: Path) -> None:
    """Killed in the middle of the data, of a new file and of one that is there."""
    (tmp_path / "old").write_text("old")
    for name in ("new", "old"):
        program = (
            "import os, signal, handrail.base.atomic as atomic\n"
            "atomic._copy_mode_and_owner = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
            f"atomic.replace_file({str(tmp_path / name)!r}, b'x' * 100000)\n"
        )
        assert subprocess.run([sys.executable, "-c", program]).returncode == -signal.SIGKILL
    assert sorted(each.name for each in tmp_path.iterdir()) == ["old"]
    assert (tmp_path / "old").read_text() == "old"


def test_errors_have_a_type_that_a_program_can_catch(tmp_path: Path) -> None:
    files = LocalFiles(str(tmp_path), max_write_bytes=10)
    (tmp_path / "folder").mkdir()
    with pytest.raises(FileNotFoundError) as missing:
        files.read("none", max_bytes=10)
    with pytest.raises(IsADirectoryError) as folder:
        files.read("folder", max_bytes=10)
    with pytest.raises(FileTooLarge) as large:
        files.write("large", b"x" * 11)
    denied = os_failure(PermissionError(errno.EACCES, "denied"), doing="read", path="x")
    assert isinstance(denied, PermissionError)
    found = [getattr(each, "error_type", "") for each in (missing.value, folder.value, large.value, denied)]
    assert found == ["not_found", "is_a_directory", "too_large", "permission_denied"]
