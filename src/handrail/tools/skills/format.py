"""The open SKILL.md format: a header in YAML between two lines `---`, and instructions in Markdown below it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from ...errors import SkillError

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
