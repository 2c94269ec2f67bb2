"""Limit a task to allowed folders."""

from __future__ import annotations

import os
from collections.abc import Sequence

from ..errors import Denied, InvalidArguments, ToolFailed
from .failures import os_failure, shown


class ResolvedPath(str):
    """An absolute path whose links were followed. Whoever uses it follows none: what was judged is what is used."""

    __slots__ = ()


class Roots:
    """A working directory, and the folders that every path must be in. Without folders there is no limit. `hidden` are files that
    nobody may use."""

    def __init__(self, cwd: str | None, roots: Sequence[str], hidden: Sequence[str] = ()) -> None:
        self._cwd, self._hidden = cwd, tuple(hidden)
        self.allowed = tuple(os.path.realpath(os.path.expanduser(root)) for root in roots)

    def resolve(self, path: str) -> ResolvedPath:
        """The absolute path with links followed. Raises Denied outside of the roots, ToolError for an invalid path.

        A path that was resolved before is left as it is.
        """
        if isinstance(path, ResolvedPath):
            self.check_inside(path, path)
            return path
        literal = self._absolute(path)
        try:
            resolved = os.path.realpath(literal)
        except OSError as error:
            raise os_failure(error, doing="use", path=path) from None
        self.check_inside(path, resolved)
        return ResolvedPath(resolved)

    def resolve_parent(self, path: str) -> ResolvedPath:
        """Like `resolve` without following a link at the last step."""
        literal = self._absolute(path)
        return ResolvedPath(os.path.join(self.resolve(os.path.dirname(literal)), os.path.basename(literal)))

    def _absolute(self, path: str) -> str:
        check_path(path)
        expanded = os.path.expanduser(path)
        return expanded if expanded.startswith("/") else os.path.join(self._directory(), expanded)

    def _directory(self) -> str:
        if self._cwd is not None:
            return os.path.abspath(os.path.expanduser(self._cwd))
        try:
            return os.getcwd()
        except OSError:
            raise ToolFailed("the working directory no longer exists; give an absolute path") from None

    def check_inside(self, path: str, resolved: str) -> None:
        """Raise Denied for a resolved path that is outside."""
        if resolved in self._hidden:
            raise Denied(
                f"{shown(path)} holds a secret that you use without seeing it (see `secrets` in the configuration)"
            )
        if not self.allowed or any(resolved == root or resolved.startswith(_slash(root)) for root in self.allowed):
            return
        leads = "" if resolved == path else f" (it leads to {shown(resolved)})"
        raise Denied(
            f"{shown(path)} is outside of the allowed folders{leads}; allowed: {', '.join(map(shown, self.allowed))}",
            allowed_roots=[shown(root) for root in self.allowed],
        )


def check_path(path: str) -> None:
    """Raise InvalidArguments for text that cannot be a path at all."""
    if not path:
        raise InvalidArguments("path is empty; give the path of a file or folder")
    if "\0" in path:
        raise InvalidArguments(f"path holds a NUL character, which no file name can: {shown(path)}")
    try:
        os.fsencode(path)
    except UnicodeEncodeError as error:
        raise InvalidArguments(
            f"path holds U+{ord(path[error.start]):04X} at position {error.start}, which no file name can"
        ) from None


def _slash(folder: str) -> str:
    return folder if folder.endswith("/") else folder + "/"
