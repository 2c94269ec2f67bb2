"""Large things of a batch in a store of files: trajectories, and what tasks are to keep, under an fsspec URL.

Workers write there themselves, from whatever node, and the ledger has only the names. Every attempt has names of its own, so
that one which has lost its task replaces nothing.
"""

from __future__ import annotations

import contextlib
import json
import posixpath
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from ..errors import ToolFailed
from ..protocols import Files
from ..types import JsonDict


class Artifacts:
    """`url` as fsspec takes it: a path, `file://`, `s3://`, ... Everything raises ToolFailed."""

    def __init__(self, url: str) -> None:
        try:
            fsspec: Any = import_module("fsspec")  # an optional dependency
        except ImportError:
            raise ToolFailed("a store for artifacts needs the extra: pip install 'handrail[fsspec]'") from None
        with _told(url):
            self._system, self._root = fsspec.url_to_fs(url)

    def check(self) -> None:
        """See that something can be written there, now and not after the first task."""
        with _told(self._root):
            self._system.makedirs(self._root, exist_ok=True)

    def write_json(self, name: str, value: JsonDict) -> str:
        """Returns the URL of what was written."""
        with self._opened(name) as (file, url):
            file.write(json.dumps(value, ensure_ascii=False).encode())
        return url

    def copy(self, files: Files, path: str, name: str) -> str | None:
        """Copy a file, or all files of a folder, of a task's environment. None when nothing is there, or links lead there."""
        if files.stat(path) is None or files.resolve(path) != path:
            return None
        for each, below in _walk(files, path):
            with self._opened(posixpath.join(name, below)) as (file, _):
                offset = 0
                while piece := files.read(each, max_bytes=files.max_read_bytes, offset=offset):
                    file.write(piece)
                    offset += len(piece)
        return self._url(name)

    def remove(self, name: str) -> None:
        with contextlib.suppress(Exception):  # it is in nobody's way: no result names it
            self._system.rm(posixpath.join(self._root, name), recursive=True)

    @contextlib.contextmanager
    def _opened(self, name: str) -> Iterator[tuple[Any, str]]:
        path = posixpath.join(self._root, name.rstrip("/"))
        with _told(path):
            self._system.makedirs(posixpath.dirname(path), exist_ok=True)
            with self._system.open(path, "wb") as file:
                yield file, self._url(name)

    def _url(self, name: str) -> str:
        return str(self._system.unstrip_protocol(posixpath.join(self._root, name.rstrip("/"))))


def _walk(files: Files, path: str, below: str = "") -> Iterator[tuple[str, str]]:
    """The regular files at a path, each with its path from there. Links are left out."""
    found = files.stat(path)
    if found is not None and not found.is_dir:
        yield path, below
        return
    for entry in sorted(files.entries(path)):
        if entry.is_dir or entry.is_file:
            yield from _walk(files, posixpath.join(path, entry.name), posixpath.join(below, entry.name))


@contextlib.contextmanager
def _told(where: str) -> Iterator[None]:
    try:
        yield
    except ToolFailed:
        raise
    except Exception as error:  # noqa: BLE001  every file system has errors of its own
        raise ToolFailed(f"artifacts cannot be kept at {where}: {type(error).__name__}: {error}") from None
