"""A link that is swapped between the judgement and the writing never wins."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from handrail.base import atomic
from handrail.errors import ToolError
from handrail.files.local import LocalFiles
from handrail.files.task_arguments import judged_path
from handrail.types import ToolContext

TRIES = 20_000
_NAMES = ("d/x.yaml", "d/new/x.yaml", "link")


@pytest.fixture
def flipping(tmp_path: Path) -> Iterator[Path]:
    """`d` is by turns a folder of the project and a link to a foreign one; `link` by turns a file and a link."""
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign/x.yaml").write_text("untouched")
    (tmp_path / "real").mkdir()
    stop = threading.Event()

    def flip() -> None:
        for name, target in (("one", "real"), ("two", "foreign")):
            os.symlink(target, tmp_path / name)
        os.symlink("real", tmp_path / "d")
        while not stop.is_set():
            for target in ("foreign", "real"):
                os.symlink(target, tmp_path / "next")
                os.replace(tmp_path / "next", tmp_path / "d")
                os.symlink(f"{target}/x.yaml", tmp_path / "next")
                os.replace(tmp_path / "next", tmp_path / "link")

    thread = threading.Thread(target=flip)
    thread.start()
    yield tmp_path
    stop.set()
    thread.join()


def _judged_inside(folder: Path, path: str) -> bool:
    return os.path.realpath(folder / path).startswith(f"{folder}/real")


def _write(files: LocalFiles, judged: str, name: str) -> None:
    context = ToolContext(files=files, judged_paths=(judged,))
    files.write(judged_path(name, context), b"written")


def _by_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(atomic, "_open", atomic._step_by_step)


@pytest.mark.parametrize("how", [None, _by_steps], ids=["openat2", "step by step"])
def test_a_swapped_link_never_wins(
    flipping: Path, monkeypatch: pytest.MonkeyPatch, how: Callable[[pytest.MonkeyPatch], None] | None
) -> None:
    if how is not None:
        how(monkeypatch)
    files = LocalFiles(str(flipping))
    written = 0
    for number in range(TRIES // 2):
        name = _NAMES[number % len(_NAMES)]
        judged = files.resolve(str(flipping / name))
        if not judged.startswith(f"{flipping}/real"):
            continue
        try:
            _write(files, judged, str(flipping / name))
            written += 1
        except ToolError:
            pass
    assert (flipping / "foreign/x.yaml").read_text() == "untouched"
    assert not (flipping / "foreign/new").exists()
    assert written > 0


def test_a_path_that_leads_elsewhere_than_when_it_was_judged_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "d").symlink_to("b")
    files = LocalFiles(str(tmp_path))
    with pytest.raises(ToolError, match="a link was changed"):
        _write(files, str(tmp_path / "a/x"), "d/x")
    assert list((tmp_path / "b").iterdir()) == []


def test_a_link_in_a_resolved_path_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    files = LocalFiles(str(tmp_path))
    resolved = files.resolve("a/x")
    (tmp_path / "a").rename(tmp_path / "b")
    (tmp_path / "a").symlink_to("b")
    for use in (
        lambda: files.write(resolved, b"x"),
        lambda: files.read(resolved, max_bytes=1),
        lambda: files.remove(resolved),
    ):
        with pytest.raises(ToolError):
            use()
    assert list((tmp_path / "b").iterdir()) == []
