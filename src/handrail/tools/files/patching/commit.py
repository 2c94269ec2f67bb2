"""Write several files, all of them or none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ....errors import ToolError, ToolFailed
from ....files.content import Current
from ....files.failures import shown
from ....protocols import Files, FileStat


class Step(NamedTuple):
    """One file: `data` is its new content, None to remove it; `before` is what it was, None when it was not there.

    `name` is the path as it was given: a removal removes that name, not the target of a link.
    """

    path: str
    name: str
    before: Current | None
    data: bytes | None
    mode: int | None = None


def commit(files: Files, steps: Sequence[Step]) -> dict[str, FileStat]:
    """Write files, then remove files. After a failure everything is undone."""
    _check_nothing_moved(files, steps)
    done: list[tuple[Step, list[str]]] = []
    written: dict[str, FileStat] = {}
    try:
        for step in sorted(steps, key=lambda step: step.data is None):
            done.append((step, _missing_folders(files, step)))
            if step.data is None:
                files.remove(step.name)
            else:
                written[step.path] = files.write(step.path, step.data, mode=step.mode)
    except BaseException as error:
        stuck = _undo(files, done)
        if stuck:
            raise ToolFailed(
                f"{error}. What was written before could not all be undone: {', '.join(map(shown, stuck))}",
                not_restored=[shown(path) for path in stuck],
            ) from error
        if isinstance(error, ToolError):
            raise type(error)(f"{error}. Nothing was written.", **error.details) from None
        raise
    return written


def _check_nothing_moved(files: Files, steps: Sequence[Step]) -> None:
    """Another program may have written between our reading and writing."""
    for step in steps:
        now = files.stat(step.path)
        if (now and now.version) != (step.before and step.before.stat.version):
            raise ToolFailed(f"{shown(step.path)} was just changed by another program; nothing was written, try again")


def _missing_folders(files: Files, step: Step) -> list[str]:
    """The folders that writing would make, innermost first."""
    missing: list[str] = []
    folder = step.path.rpartition("/")[0]
    while step.data is not None and folder and files.stat(folder) is None:
        missing.append(folder)
        folder = folder.rpartition("/")[0]
    return missing


def _undo(files: Files, done: Sequence[tuple[Step, list[str]]]) -> list[str]:
    """Restore everything, last first. Returns the paths for which that failed."""
    stuck: list[str] = []
    for step, folders in reversed(done):
        try:
            now = files.stat(step.path)
            if step.before is None:
                for path in (step.path, *folders):
                    if files.stat(path) is not None:
                        files.remove(path)
            elif step.before.data is not None and (now is None or now.version != step.before.stat.version):
                files.write(step.path, step.before.data, mode=step.before.stat.mode)
        except ToolError:
            stuck.append(step.path)
    return stuck
