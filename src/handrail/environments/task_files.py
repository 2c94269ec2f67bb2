"""A task's files, as a call gets them: its environment is asked for when the first file is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..protocols import FileEntry, Files, FileStat
    from .tasks import TaskEnvironments


class TaskFiles:
    """`protocols.Files` of whatever environment the task has when it is used."""

    __slots__ = ("_before", "_environments", "_task_id")

    def __init__(self, environments: TaskEnvironments, task_id: str | None) -> None:
        self._environments, self._task_id = environments, task_id
        self._before: Files | None = None

    @property
    def _files(self) -> Files:
        if self._environments.peek(self._task_id) is None:
            if self._before is None:
                self._before = self._environments.files_before(self._task_id)
            if self._before is not None:
                return self._before
        return self._environments.of(self._task_id).files

    @property
    def max_read_bytes(self) -> int:
        return self._files.max_read_bytes

    def resolve(self, path: str) -> str:
        return self._files.resolve(path)

    def stat(self, path: str) -> FileStat | None:
        return self._files.stat(path)

    def entries(self, path: str) -> Sequence[FileEntry]:
        return self._files.entries(path)

    def read(self, path: str, *, max_bytes: int, offset: int = 0) -> bytes:
        return self._files.read(path, max_bytes=max_bytes, offset=offset)

    def write(self, path: str, data: bytes, *, mode: int | None = None) -> FileStat:
        return self._files.write(path, data, mode=mode)

    def remove(self, path: str) -> None:
        self._files.remove(path)

    def host_path(self, path: str) -> str | None:
        return self._files.host_path(path)
