"""Several writers of one file, and writers that die."""

from __future__ import annotations

import fcntl
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from handrail.config import paths
from handrail.errors import ConfigError
from tests.support import PATIENCE_SECONDS

APPEND = """
import sys
from handrail.config.config_file import ConfigFile
file = ConfigFile(sys.argv[1])
for number in range(int(sys.argv[3])):
    file.update(lambda s: s.setdefault("command_allowlist", []).append(f"{sys.argv[2]} {number}"))
"""

# Forks writers that never stop, kills each at a random moment, and looks at what it left.
KILL_WRITERS = """
import itertools, os, random, select, signal, sys
from handrail.config.config_file import ConfigFile
file = ConfigFile(sys.argv[1])
file.set("command_allowlist", ["0"] * 20)
for _ in range(int(sys.argv[2])):
    before = int(file.get("command_allowlist")[0])
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        for generation in itertools.count(before + 1):
            file.set("command_allowlist", [str(generation)] * 20)
            os.write(writer, b".")
    os.close(writer)
    os.read(reader, 1)  # it has begun
    select.select([], [], [], random.uniform(0, 0.015))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    finished = 1 + len(os.read(reader, 65536))
    os.close(reader)
    items = file.get("command_allowlist")
    assert len(items) == 20 and len(set(items)) == 1, f"half a file: {items}"
    assert before + finished <= int(items[0]) <= before + finished + 1, f"a finished write is gone: {items[0]}"
"""


def test_no_change_of_concurrent_processes_is_lost(start_python, file, path):
    path.write_text("# kept\ncommand_allowlist:\n  - first # of all\n")
    processes = [start_python(APPEND, path, f"writer{number}", 10) for number in range(4)]
    for process in processes:
        _, errors = process.communicate(timeout=5 * PATIENCE_SECONDS)
        assert process.returncode == 0, errors
    written = file.get("command_allowlist")
    expected = {f"writer{number} {item}" for number in range(4) for item in range(10)}
    assert len(written) == len(expected) + 1
    assert set(written) == expected | {"first"}
    assert path.read_text().startswith("# kept\ncommand_allowlist:\n  - first # of all\n")


def test_no_change_of_concurrent_threads_is_lost(file):
    def append(number: int) -> None:
        file.update(lambda settings: settings.setdefault("command_allowlist", []).append(f"item {number}"))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(append, range(40)))
    assert set(file.get("command_allowlist")) == {f"item {number}" for number in range(40)}


def test_a_killed_writer_leaves_the_old_file_or_the_new_one(start_python, file, path):
    process = start_python(KILL_WRITERS, path, 40)
    _, errors = process.communicate(timeout=5 * PATIENCE_SECONDS)
    assert process.returncode == 0, errors
    file.set("command_allowlist", [])
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["config.yaml", "config.yaml.lock"]


def test_a_crash_before_the_replacement_leaves_the_old_file(file, path, monkeypatch):
    path.write_text("calls:\n  max_threads: 1\n")

    def no_space(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(paths.os, "fsync", no_space)
    with pytest.raises(ConfigError, match="No space left on device"):
        file.set("calls.max_threads", 2)
    assert path.read_text() == "calls:\n  max_threads: 1\n"
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["config.yaml", "config.yaml.lock"]


def test_a_writer_that_never_finishes_does_not_stop_others_for_good(file, path, monkeypatch):
    monkeypatch.setattr(paths, "LOCK_TIMEOUT", 0.05)
    with open(f"{path}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(ConfigError, match=r"another writer has held .*config\.yaml\.lock"):
            file.set("calls.max_threads", 2)
    assert not path.exists()
    file.set("calls.max_threads", 2)


def test_cache_files_and_new_folders_are_private_whatever_the_umask(home: Path) -> None:
    before = os.umask(0)
    try:
        paths.remember("known.json", {"a": 1}, home=str(home / "new"))
        paths.make_private(home / "other" / "inner")
    finally:
        os.umask(before)
    private = ("new", "new/cache", "other", "other/inner")
    assert [(home / name).stat().st_mode & 0o777 for name in private] == [0o700] * 4
    assert (home / "new/cache/known.json").stat().st_mode & 0o777 == 0o600


def test_a_cache_that_an_earlier_version_left_open_is_closed(home: Path) -> None:
    folder = home / "cache"
    folder.mkdir()
    folder.chmod(0o777)
    paths.remember("known.json", {}, home=str(home))
    assert folder.stat().st_mode & 0o777 == 0o700
