"""`@path` in a message: completed while it is typed, and sent with what the file holds. Images are sent as images."""

import base64
import itertools
import mimetypes
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ...types import JsonDict
from ..call_text import counted

_MENTION = re.compile(r"(?<!\S)@(\"[^\"\n]+\"|\S+)")
_IMAGE_PATH = re.compile(r"(?<!\S)(?:file://)?(['\"]?)(/\S.*?\.(?:png|jpe?g|gif|webp))\1(?!\S)", re.IGNORECASE)
_IMAGES = (".png", ".jpg", ".jpeg", ".gif", ".webp")
_MAX_FILES = 20_000
_MAX_CHARS = 20_000
_MAX_IMAGE_BYTES = 10 << 20
_MAX_NAMES = 200
_FRESH_SECONDS = 5.0
_SKIPPED = {".git", "node_modules", ".venv", "__pycache__", ".tox", ".mypy_cache"}


class Mentioned(NamedTuple):
    """What goes with a message: texts and images for the model; for the user, what was attached, what could not be, and what is
    neither file nor folder: a typing mistake, or a decorator, a handle, a resource of an MCP server."""

    texts: list[str]
    images: list[JsonDict]
    attached: list[str]
    problems: list[str]
    unknown: list[str]


class FolderIndex:
    """The files and folders below a folder, listed anew after a few seconds: all but the usual caches."""

    def __init__(self) -> None:
        self._folder, self._at = "", 0.0
        self._names: list[str] = []

    def matching(self, folder: str, typed: str, most: int = 30) -> list[str]:
        """Names that have the typed letters in this order; those with them together, and late in the path, first."""
        if folder != self._folder or time.monotonic() - self._at > _FRESH_SECONDS:
            self._names = list(itertools.islice(_files(folder), _MAX_FILES))
            self._folder, self._at = folder, time.monotonic()
        scores = {name: _score(name.lower(), typed.lower()) for name in self._names}
        found = sorted((score, len(name), name) for name, score in scores.items() if score is not None)
        return [name for _, _, name in found[:most]]


def _score(name: str, wanted: str) -> int | None:
    """Smaller is better; None when the letters are not in it."""
    if not wanted:
        return name.rstrip("/").count("/")
    base = name.rstrip("/").rpartition("/")[2]
    if base.startswith(wanted):
        return 0
    if wanted in base:
        return 1
    if wanted in name:
        return 2
    place = 0
    for letter in wanted:
        place = name.find(letter, place) + 1
        if not place:
            return None
    return 3


def _files(folder: str) -> Iterator[str]:
    # Not by git: its configuration in this folder, which others may have written, can name programs to run.
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED)
        below = os.path.relpath(place, folder)
        yield from (os.path.normpath(os.path.join(below, name)) for name in files)
        yield from (os.path.normpath(os.path.join(below, name)) + "/" for name in folders)


def mentioned(text: str, cwd: str) -> Mentioned:
    """What `@path` in a message, and the path of an image that was dropped or pasted, stand for."""
    found = Mentioned([], [], [], [], [])
    names = [match[1].strip('"') for match in _MENTION.finditer(text)]
    names += [match[2] for match in _IMAGE_PATH.finditer(text)]
    for typed in dict.fromkeys(names):
        # The end of a sentence may follow a name.
        known = (each for each in (typed, typed.rstrip(".,;:!?)")) if Path(cwd, os.path.expanduser(each)).exists())
        if (name := next(known, None)) is None:
            found.unknown.append(typed.rstrip(".,;:!?)"))
            continue
        path = Path(cwd, os.path.expanduser(name))
        try:
            found.attached.extend(filter(None, [_add(found, name, path)]))
        except OSError as error:
            found.problems.append(f"@{name} cannot be read: {error.strerror}")
    return found


def _add(found: Mentioned, name: str, path: Path) -> str:
    """What was attached, in words; empty for nothing."""
    if path.is_dir():
        names = sorted(f"{each.name}/" if each.is_dir() else each.name for each in path.iterdir())
        more = f"\n… {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
        found.texts.append(f"[The folder {name} holds:]\n" + "\n".join(names[:_MAX_NAMES]) + more)
        return f"{name} ({counted(len(names), 'name')})"
    elif path.suffix.lower() in _IMAGES:
        if path.stat().st_size > _MAX_IMAGE_BYTES:
            found.problems.append(f"@{name} is larger than {_MAX_IMAGE_BYTES >> 20} MB, and was not sent")
            return ""
        kind = mimetypes.guess_type(path.name)[0] or "image/png"
        data = base64.b64encode(path.read_bytes()).decode("ascii")
        found.images.append({"type": "image_url", "image_url": {"url": f"data:{kind};base64,{data}"}})
        return f"{name} (image)"
    with path.open("rb") as file:
        content = file.read(_MAX_CHARS * 4)
    if b"\0" in content:
        found.texts.append(f"[{name} is a binary file of {path.stat().st_size:,} bytes.]")
        return f"{name} (binary: its size only)"
    text = content.decode("utf-8", "replace")
    is_cut, text = len(text) > _MAX_CHARS, text[:_MAX_CHARS]
    found.texts.append(f"[{name}:]\n{text}" + "\n[… it goes on; read_file reads the rest]" * is_cut)
    return f"{name} ({'the first ' * is_cut}{counted(len(text.splitlines()), 'line')})"
