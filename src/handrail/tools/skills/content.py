"""The content of a skill's folder, read once: a model is shown exactly what was inspected.

SKILL.md is in the open format: a header in YAML between two lines `---`, and instructions in Markdown below it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from stat import S_ISLNK, S_ISREG
from typing import Any, NamedTuple

from ...base.safe_text import suspicion_of, unseen_in
from ...config.trust import digest
from ...errors import SkillError

_MAX_FILES = 1_000
_MAX_BYTES = 10_000_000
_PROSE = (".md", ".markdown", ".txt", ".rst")
Stamp = tuple[str, int, int, int]
FILE = "SKILL.md"
MAX_NAME_CHARS = 64
MAX_DESCRIPTION_CHARS = 1024
_MAX_FILE_CHARS = 262_144
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,100}")
EXAMPLE = (
    "---\nname: git-release\ndescription: How this team tags and publishes a release. Use when asked to release.\n---\n"
)


class Header(NamedTuple):
    """A skill's header. `description` is all that a model knows of it before it reads it."""

    name: str
    description: str
    license: str = ""
    compatibility: str = ""
    allowed_tools: str = ""
    metadata: Mapping[str, str] = {}
    variables: tuple[str, ...] = ()  # environment variables that it needs


def check_name(name: object) -> str:
    """The name, if it can be one. Raises SkillError."""
    if not isinstance(name, str) or len(name) > MAX_NAME_CHARS or not _NAME.fullmatch(name):
        raise SkillError(
            f"{str(name)[:80]!r} is not a name for a skill: use 1 to {MAX_NAME_CHARS} small letters, digits and single hyphens"
        )
    return name


def parse(text: str) -> tuple[Header, str]:
    """The header and the instructions. Raises SkillError with what to change."""
    if len(text) > _MAX_FILE_CHARS:
        raise SkillError(f"{FILE} has {len(text):,} characters; move the details to files beside it")
    lines = text.removeprefix("\ufeff").splitlines()
    if not lines or lines[0].rstrip() != "---":
        raise SkillError(f"{FILE} must start with a header, such as:\n{EXAMPLE}")
    end = next((number for number, line in enumerate(lines[1:], 1) if line.rstrip() == "---"), None)
    if end is None:
        raise SkillError(f"the header of {FILE} does not end; close it with a line ---")
    return _header("\n".join(lines[1:end])), "\n".join(lines[end + 1 :]).strip()


def _header(text: str) -> Header:
    found = _mapping(text)
    name = check_name(found.get("name"))
    description = found.get("description")
    if not isinstance(description, str) or not description.strip():
        raise SkillError("the header needs a description: what the skill does, and when to use it")
    if len(description) > MAX_DESCRIPTION_CHARS:
        raise SkillError(f"the description has {len(description):,} characters; at most {MAX_DESCRIPTION_CHARS:,} fit")
    metadata = found.get("metadata")
    return Header(
        name,
        " ".join(description.split()),
        _words(found.get("license")),
        _words(found.get("compatibility")),
        _words(found.get("allowed-tools")),
        {str(key): _words(value) for key, value in metadata.items()} if isinstance(metadata, dict) else {},
        _variables(found),
    )


def _variables(found: dict[str, Any]) -> tuple[str, ...]:
    """From `required_environment_variables`, names or mappings with a `name`, or the older `prerequisites.env_vars`."""
    before = found.get("prerequisites")
    given = found.get("required_environment_variables") or (
        before.get("env_vars") if isinstance(before, dict) else None
    )
    names = [
        each.get("name") if isinstance(each, dict) else each for each in (given if isinstance(given, list) else [given])
    ]
    return tuple(name for name in names if isinstance(name, str) and _VARIABLE.fullmatch(name))


def _mapping(text: str) -> dict[str, Any]:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        found = YAML(typ="safe", pure=True).load(text)
    except (YAMLError, ValueError, RecursionError) as error:
        problem = str(getattr(error, "problem", "") or error).partition("\n")[0][:200]
        raise SkillError(f"the header is not YAML ({problem}); put quotes around a value that has a colon") from None
    if not isinstance(found, dict):
        raise SkillError(f"the header must be names with values, such as:\n{EXAMPLE}")
    return found


def _words(value: object) -> str:
    """A short text or a list of them; empty for anything else."""
    if isinstance(value, list):
        value = " ".join(str(each) for each in value[:50] if isinstance(each, str | int | float))
    return str(value)[:500] if isinstance(value, str | int | float) else ""


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
