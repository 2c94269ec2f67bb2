"""The content of a skill's folder, read once: a model is shown exactly what was inspected."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import lru_cache
from stat import S_ISLNK, S_ISREG
from typing import NamedTuple

from ...base.prompt_injection import suspicion_of, unseen_in
from ...config.trust import digest
from ...errors import SkillError
from .format import FILE, Header, parse

_MAX_FILES = 1_000
_MAX_BYTES = 10_000_000
_PROSE = (".md", ".markdown", ".txt", ".rst")

Stamp = tuple[str, int, int, int]


class Inspected(NamedTuple):
    """The result of an inspection. `problem` says why the folder is not a skill."""

    header: Header | None
    problem: str = ""
    digest: str = ""
    suspicion: str = ""


def inspect(folder: str) -> Inspected:
    """Inspect a skill. An unchanged one is not read again."""
    try:
        return _inspect(folder, tuple(_stamps(folder)))
    except (SkillError, OSError) as error:
        return Inspected(None, _message(error))


def read(folder: str) -> dict[str, bytes]:
    """Every file by its path inside of the folder. Raises SkillError, OSError."""
    content: dict[str, bytes] = {}
    size = 0
    for name, *_ in _stamps(folder):
        with open(os.path.join(folder, name), "rb") as file:
            content[name] = data = file.read(_MAX_BYTES + 1)
        size += len(data)
        if size > _MAX_BYTES:
            raise SkillError(f"the skill has more than {_MAX_BYTES // 1_000_000} MB; keep data elsewhere")
    return content


def judge(content: Mapping[str, bytes]) -> Inspected:
    """Inspect a skill with this content."""
    try:
        header, _ = parse(text_of(content, FILE))
    except SkillError as error:
        return Inspected(None, str(error))
    return Inspected(header, "", digest(content), _suspicion(content))


def text_of(content: Mapping[str, bytes], name: str) -> str:
    """A file as text. Raises SkillError."""
    try:
        return content[name].decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SkillError(f"{name} is not text ({len(content[name]):,} bytes); use it by its path") from None


def suspicion_of_file(name: str, text: str) -> str:
    """Scripts and data may hold nearly anything; prose must not hide instructions."""
    found = suspicion_of(text) if name.lower().endswith(_PROSE) else unseen_in(text)
    return f"{name} {found}" if found else ""


@lru_cache(maxsize=1024)
def _inspect(folder: str, _stamps: tuple[Stamp, ...]) -> Inspected:
    return judge(read(folder))


def _suspicion(content: Mapping[str, bytes]) -> str:
    for name in sorted(content):
        found = unseen_in(name)
        if found:
            return f"the name of a file {found}"
        try:
            text = content[name].decode("utf-8-sig")
        except UnicodeDecodeError:
            continue  # a model is shown text only
        found = suspicion_of_file(name, text)
        if found:
            return found
    return ""


def _stamps(folder: str) -> Iterator[Stamp]:
    count = 0
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(each for each in folders if each != "__pycache__" and not each.startswith("."))
        for name in [*sorted(names), *folders]:
            path = os.path.join(place, name)
            found = os.lstat(path)
            inner = os.path.relpath(path, folder)
            if S_ISLNK(found.st_mode):
                raise SkillError(f"{inner} is a link; what it names could change unseen. Copy the file")
            if not S_ISREG(found.st_mode) or name.endswith(".pyc"):
                continue
            count += 1
            if count > _MAX_FILES:
                raise SkillError(f"the skill has more than {_MAX_FILES:,} files; keep data elsewhere")
            yield inner, found.st_mtime_ns, found.st_size, found.st_ino


def _message(error: SkillError | OSError) -> str:
    return str(error) if isinstance(error, SkillError) else f"it cannot be read: {error.strerror or error}"
