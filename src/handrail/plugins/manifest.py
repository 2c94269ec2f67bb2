"""A plugin's description of itself: `plugin.yaml` in its folder, or the docstring of a single file."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import RegistrationError

if TYPE_CHECKING:
    from .plugin_files import PluginFiles

MANIFEST = "plugin.yaml"


class Manifest(NamedTuple):
    """All of it is for display, except `requires_env`: without these variables the plugin is not loaded."""

    name: str = ""
    version: str = ""
    description: str = ""
    requires_env: tuple[str, ...] = ()
    provides: tuple[str, ...] = ()


def read_manifest(files: PluginFiles) -> Manifest:
    """Raises RegistrationError for a manifest that cannot be understood."""
    source = files.content["__init__.py"]
    if MANIFEST not in files.content:
        return Manifest(name=files.name, description=_first_line(source))
    found = _parsed(files)
    unknown = sorted(map(str, found.keys() - set(Manifest._fields)))
    if unknown:
        raise RegistrationError(
            f"plugin {files.name!r}: {MANIFEST} has unknown keys {', '.join(unknown)}; known: {', '.join(Manifest._fields)}"
        )
    if found.get("name", files.name) != files.name:
        raise RegistrationError(
            f"plugin {files.name!r}: {MANIFEST} calls it {found['name']!r}; the folder's name must be the same"
        )
    return Manifest(
        files.name,
        str(found.get("version", "")),
        str(found.get("description", "")) or _first_line(source),
        _words(files.name, found, "requires_env"),
        _words(files.name, found, "provides"),
    )


def _parsed(files: PluginFiles) -> dict[str, Any]:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        found = YAML(typ="safe", pure=True).load(files.content[MANIFEST].decode())
    except (YAMLError, UnicodeDecodeError) as error:
        raise RegistrationError(f"plugin {files.name!r}: {MANIFEST} cannot be read: {error}") from None
    if found is not None and not isinstance(found, dict):
        raise RegistrationError(f"plugin {files.name!r}: {MANIFEST} must be a mapping, such as `version: 1.0`")
    return found or {}


def _words(name: str, found: dict[str, Any], key: str) -> tuple[str, ...]:
    words = found.get(key) or []
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise RegistrationError(f"plugin {name!r}: {key} in {MANIFEST} must be a list of names")
    return tuple(words)


def _first_line(source: bytes) -> str:
    try:
        text = ast.get_docstring(ast.parse(source)) or ""
    except (SyntaxError, ValueError, RecursionError):
        return ""  # importing it says what is wrong
    return text.partition("\n")[0]
