"""Temporary folders: private, gone with who made them, and after a kill gone with the next."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from handrail.base import temporary_folders
from handrail.base.own_process import pid_namespace
from handrail.base.temporary_folders import left_folders, make_folder, temporary_folder

_KILLED = """
import os, signal, sys
from handrail.base.temporary_folders import make_folder
print(make_folder(sys.argv[1]), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def killed_with_folder(kind: str, place: Path) -> Path:
    """The folder of a process that was killed."""
    command, env = [sys.executable, "-c", _KILLED, kind], {**os.environ, "TMPDIR": str(place)}
    found = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=False).stdout.strip()
    assert os.path.isdir(found)
    return Path(found)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    temporary_folders._remove_left.cache_clear()
    return tmp_path


def test_it_is_private_and_gone_afterwards(place: Path) -> None:
    with temporary_folder("speech") as folder:
        assert Path(folder).parent == place
        assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
        Path(folder, "file").write_text("x")
        assert left_folders() == []
    assert not os.path.exists(folder)


def test_what_a_killed_process_left_is_removed_by_the_next(place: Path) -> None:
    left = killed_with_folder("code", place)
    (left / "file").write_text("x")
    # The process of another container, and files of others, are not judged.
    elsewhere = f"{int(pid_namespace()) + 1 & 0xFFFF:x}"
    kept = [f"handrail-code.1.1.{elsewhere}.abc", "handrail-code", "handrail-batch-12", "code.1.1.1.abc"]
    for name in kept:
        (place / name).mkdir()
    assert left_folders() == [str(left)]
    mine = make_folder("code")
    assert sorted(os.listdir(place)) == sorted([*kept, os.path.basename(mine)])
