"""Check plain values against the schema, and build the typed configuration from valid ones."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, cast, get_args, get_origin, get_type_hints

import jsonschema_rs

from ..errors import ConfigError
from ..settings.schema import Config, json_schema, optional_of
from ..types import JsonDict
from .yaml_document import Document, Steps, dotted

Key = str | tuple[str, ...]

_KINDS = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "a mapping",
    "null": "null",
}
_LIMITS = {
    "minimum": "at least",
    "maximum": "at most",
    "exclusiveMinimum": "more than",
    "exclusiveMaximum": "less than",
}


def checked(document: Document) -> JsonDict:
    """The settings that a document holds. Raises at its first mistake, with file, line and key."""
    if document.value is not None and not isinstance(document.value, dict):
        raise ConfigError("must be a mapping of sections, such as `files:`", path=document.path, line=1)
    settings: JsonDict = _filled(document.value or {}, _schema())
    problems = [
        ConfigError(message, path=document.path, line=document.line_of(steps), key=dotted(steps))
        for steps, message in _problems(settings)
    ]
    if problems:
        raise min(problems, key=lambda problem: problem.line or 0)
    return settings


def check(settings: JsonDict, *, path: str = "", key: str = "") -> None:
    """Raise for settings that come from elsewhere than a file. `key` is named in place of their own."""
    for steps, message in _problems(settings):
        raise ConfigError(message, path=path, key=key or dotted(steps))


def build(settings: JsonDict) -> Config:
    """The typed configuration of checked settings."""
    return cast("Config", _built(Config, settings))


def plain(value: Any, *, steps: Steps = ()) -> Any:
    """A copy of a Python value in the types that YAML and JSON know."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _plain_text(value, steps)
    for kind in (int, float):
        if isinstance(value, kind):
            return kind(value)
    if isinstance(value, os.PathLike):
        return plain(os.fspath(value), steps=steps)
    if isinstance(value, Mapping):
        return {_plain_key(key, steps): plain(item, steps=(*steps, str(key))) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, steps=(*steps, index)) for index, item in enumerate(value)]
    raise ConfigError(f"a {type(value).__name__} cannot be stored in a configuration", key=dotted(steps))


def known_steps(key: Key) -> tuple[str, ...]:
    """A key such as `files.roots` as its steps. A tuple is for names that have a dot: `("plugins", "a.b")`."""
    steps = tuple(key.split(".")) if isinstance(key, str) else tuple(key)
    schema_at(steps)
    return steps


def schema_at(steps: Steps) -> JsonDict:
    """The JSON Schema of one setting. Raises for a key that does not exist."""
    schema = _schema()
    for index, step in enumerate(steps):
        if isinstance(step, int):
            schema = schema["items"]
            continue
        here = dotted(steps[: index + 1])
        if schema["type"] != "object":
            raise ConfigError(f"unknown key; {dotted(steps[:index])} has no keys below it", key=here)
        properties, named = schema.get("properties", {}), schema["additionalProperties"]
        if step not in properties and not (named and step):
            raise ConfigError(f"unknown key; {nearest(step, properties)}", key=here)
        schema = properties.get(step) or named
    return schema


def nearest(word: str, known: Iterable[str], *, prefix: str = "") -> str:
    """The hint for someone who wrote `word`; known words are shown with the prefix."""
    import difflib

    known = sorted(known)
    if not known:
        return "it ends in a name of your choice"
    close = difflib.get_close_matches(word, known, n=1)
    if close:
        return f"did you mean {prefix}{close[0]}?"
    return f"known: {', '.join(prefix + name for name in known)}"


@cache
def _schema() -> JsonDict:
    return json_schema()


@cache
def _validator() -> jsonschema_rs.Validator:
    import jsonschema_rs

    return jsonschema_rs.validator_for(_schema(), retriever=_refuse_to_fetch)


def _refuse_to_fetch(uri: str) -> Any:
    raise ValueError(f"the configuration's schema may not refer to {uri}: nothing is fetched")


def _problems(settings: JsonDict) -> Iterable[tuple[Steps, str]]:
    for error in _validator().iter_errors(settings):
        steps: Steps = tuple(error.instance_path)
        kind, details = error.kind.name, error.kind.as_dict()
        if kind == "additionalProperties":
            known = schema_at(steps)["properties"]
            for key in details["unexpected"]:
                yield (*steps, key), f"unknown key; {nearest(key, known)}"
        else:
            # The validator has no infinity and shows null for it, so the value is looked up.
            yield steps, _message(kind, details, _shown(_value_at(settings, steps))) or error.message


def _message(kind: str, details: JsonDict, shown: str) -> str:
    if kind == "type":
        return f"must be {' or '.join(_KINDS[name] for name in sorted(details['types']))}, not {shown}"
    if kind == "enum":
        return f"must be one of {', '.join(map(str, details['options']))}; not {shown}"
    if kind == "minLength":
        return "must not be empty text"
    if kind == "propertyNames":
        return "must not have an empty name in it"
    if kind in _LIMITS:
        return f"must be {_LIMITS[kind]} {details['limit']}, not {shown}"
    return ""


def _value_at(settings: Any, steps: Steps) -> Any:
    for step in steps:
        settings = settings[step]
    return settings


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if value is None:
        return "empty (null)"
    if isinstance(value, int) and value.bit_length() > 200:
        return "a number of more than 60 digits"  # Python refuses to print one of some thousand
    text = repr(value) if isinstance(value, str) else str(value).lower()
    return text if len(text) <= 60 else text[:57] + "..."


def _filled(value: Any, schema: JsonDict) -> Any:
    """The same settings with `{}` for a section that has only its name: all of its lines may be commented out."""
    if schema.get("type") != "object":
        return value
    if value is None:
        return {}
    if not isinstance(value, dict):
        return value
    named = schema["additionalProperties"] or {}
    return {key: _filled(item, schema.get("properties", {}).get(key, named)) for key, item in value.items()}


def _plain_key(key: object, steps: Steps) -> str:
    if not isinstance(key, str):
        raise ConfigError(f"has the key {key!r}, which is not text", key=dotted(steps))
    return _plain_text(key, steps)


def _plain_text(text: str, steps: Steps) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ConfigError("has bytes that are not UTF-8, or half of a surrogate pair", key=dotted(steps)) from None
    return str.__str__(text)  # a subclass, such as an enum member, becomes plain text


def _built(hint: Any, value: Any) -> Any:
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        hints = get_type_hints(hint)
        return hint(**{key: _built(hints[key], item) for key, item in value.items()})
    if optional := optional_of(hint):
        return None if value is None else _built(optional, value)
    if get_origin(hint) is tuple:
        return tuple(_built(get_args(hint)[0], item) for item in value)
    if get_origin(hint) is Mapping:
        return {key: _built(get_args(hint)[1], item) for key, item in value.items()}
    # JSON Schema takes 1.0 for an integer, and 1 for a number.
    return hint(value) if hint in (int, float) else value
