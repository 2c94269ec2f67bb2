"""Read YAML text, check its values against the schema, and build the typed configuration from valid ones."""

import dataclasses
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, cast, get_args, get_origin, get_type_hints

import jsonschema_rs
from ruamel.yaml import YAML
from ruamel.yaml.composer import Composer
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode
from ruamel.yaml.reader import ReaderError

from ..base.suggest import nearest
from ..errors import ConfigError
from ..settings.schema import Config, json_schema, optional_of
from ..types import JsonDict
from .paths import MAX_BYTES

Steps = tuple[str | int, ...]

# The parser takes some 50 µs a value, so this is a second of work.
_MAX_VALUES, _MAX_DEPTH = 20_000, 20
_TOO_MANY = f"holds more than {_MAX_VALUES:,} values; a configuration does not"
_TOO_DEEP = "is nested too deeply"
_TAG = "tag:yaml.org,2002:"


@dataclass(slots=True)
class Document:
    """One file's text and what it says. `lines` has the line of each key and list item, counted from 1."""

    text: str
    path: str
    value: Any = None
    node: Node | None = None
    lines: dict[Steps, int] = field(default_factory=dict)
    has_aliases: bool = False

    def line_of(self, steps: Steps) -> int | None:
        """The line of a place, or of the nearest place above it that the text mentions."""
        while steps and steps not in self.lines:
            steps = steps[:-1]
        return self.lines.get(steps)


def dotted(steps: Steps) -> str:
    """`("files", "roots", 1)` as people write it: `files.roots[1]`."""
    text = ""
    for step in steps:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def parse(text: str, *, path: str = "") -> Document:
    """The document in `text`, as plain values that remember their lines. `path` is what errors name as its source. The nodes
    are walked here, instead of loading through a constructor, because a configuration wants less than YAML offers and better
    errors: every key's line, no tags, dates or binary, no key twice, a bound on what aliases unfold to."""
    if len(text) > MAX_BYTES:
        raise ConfigError(f"is larger than {MAX_BYTES:,} bytes; a configuration is not", path=path)
    document = Document(text, path)
    yaml = YAML(typ="safe", pure=True)
    yaml.Composer = _BoundedComposer
    document.node = _compose(yaml, document)
    if document.node is not None:
        document.value = _Reader(yaml, document).read(document.node, ())
    return document


class _BoundedComposer(Composer):
    """Stops at a text that is made to keep the parser busy, long before its end."""

    _count = _depth = 0

    def __init__(self, loader: Any = None) -> None:
        super().__init__(loader)
        # A name used for two anchors is legal; ruamel would print a Python warning about it.
        self.warn_double_anchors = False

    def compose_node(self, parent: Any, index: Any) -> Any:
        self._count += 1
        self._depth += 1
        if self._count > _MAX_VALUES or self._depth > _MAX_DEPTH:
            message = _TOO_MANY if self._count > _MAX_VALUES else _TOO_DEEP
            raise ConfigError(message, line=self.parser.peek_event().start_mark.line + 1)
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node


def _compose(yaml: YAML, document: Document) -> Node | None:
    text, path = document.text, document.path
    try:
        node: Node | None = yaml.compose(text)
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        shown = f"U+{error.character:04X}" if isinstance(error.character, int) else repr(error.character)
        raise ConfigError(f"has the character {shown}, which YAML does not allow", path=path, line=line) from None
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        # The end of the stream is on the line after the last; an editor cannot go there.
        last = min(mark.line, len(text.splitlines()) - 1) + 1 if mark else None
        raise ConfigError(_syntax_problem(error), path=path, line=last) from None
    except ConfigError as error:
        raise ConfigError(str(error), path=path, line=error.line) from None
    except (YAMLError, ValueError, LookupError, AssertionError, TypeError, AttributeError) as error:
        # What the parser lets slip on text that is nothing like YAML.
        raise ConfigError(f"is not valid YAML: {error}", path=path) from None
    if yaml.resolver.processing_version == (1, 1):
        message = "asks for YAML 1.1, where `no` and `off` are not text; remove the %YAML line"
        raise ConfigError(message, path=path, line=1)
    return node


def _syntax_problem(error: Any) -> str:
    problem = error.problem or "it cannot be parsed"
    if "'\\t'" in problem:
        problem += "; indent with spaces, not tabs"
    elif "stream end" in problem or "end of stream" in problem:
        problem += "; it seems cut off"
    context = f" ({error.context})" if error.context else ""
    return f"is not valid YAML: {problem}{context}"


class _Reader:
    """Turns one document's nodes into plain values."""

    def __init__(self, yaml: YAML, document: Document) -> None:
        self._constructor = yaml.constructor
        self._document = document
        self._seen: set[int] = set()
        self._count = 0

    def read(self, node: Node, steps: Steps) -> Any:
        self._bound(node, steps)
        if isinstance(node, ScalarNode):
            return self._scalar(node, steps)
        if node.tag not in (_TAG + "map", _TAG + "seq"):
            raise self._error(f"has the tag {node.tag}, which a configuration cannot use; remove it", steps, node)
        if isinstance(node, MappingNode):
            return self._mapping(node, steps)
        items = []
        for index, item in enumerate(node.value):
            self._document.lines[(*steps, index)] = item.start_mark.line + 1
            items.append(self.read(item, (*steps, index)))
        return items

    def _bound(self, node: Node, steps: Steps) -> None:
        # An alias gives the same node again, so a few short lines can stand for billions of values, or for a loop.
        self._document.has_aliases |= id(node) in self._seen
        self._seen.add(id(node))
        self._count += 1
        if self._count > _MAX_VALUES:
            raise self._error(_TOO_MANY, steps[:1], node)
        if len(steps) > _MAX_DEPTH:
            raise self._error(_TOO_DEEP, steps[:1], node)

    def _mapping(self, node: MappingNode, steps: Steps) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = self._key(key_node, steps)
            here = (*steps, key)
            if key in values:
                first = self._document.lines.pop(here)
                raise self._error(f"is set twice; it is also on line {first}", here, key_node)
            self._document.lines[here] = key_node.start_mark.line + 1
            values[key] = self.read(value_node, here)
        return values

    def _key(self, node: Node, steps: Steps) -> str:
        # `<<` merges mappings in YAML 1.1 only; here it is a key like others, and an unknown one.
        if node.tag in (_TAG + "str", _TAG + "merge"):
            return self._text(node, steps)
        shown = node.value if isinstance(node.value, str) else "a list or mapping"
        message = f"has the key {shown}, which is not text; put it in quotes"
        raise ConfigError(message, path=self._document.path, line=node.start_mark.line + 1, key=dotted(steps))

    def _scalar(self, node: ScalarNode, steps: Steps) -> Any:
        kind = str(node.tag).removeprefix(_TAG)
        if kind == "str":
            return self._text(node, steps)
        if kind == "null":
            return None
        shown = repr(node.value[:60])
        if kind not in ("bool", "int", "float"):
            raise self._error(f"{shown} is read as a YAML {kind}; put it in quotes to make it text", steps, node)
        try:
            return getattr(self._constructor, f"construct_yaml_{kind}")(node)
        except (ValueError, LookupError) as error:
            raise self._error(f"{shown} is not a YAML {kind}: {error}", steps, node) from None

    def _text(self, node: Node, steps: Steps) -> str:
        text: str = node.value
        try:
            text.encode()
        except UnicodeEncodeError:
            raise self._error("has half of a surrogate pair, which is no character; remove it", steps, node) from None
        return text

    def _error(self, message: str, steps: Steps, node: Node) -> ConfigError:
        # A node that came by an alias has its mark elsewhere; the key that led here is what the reader looks for.
        line = self._document.lines.get(steps, node.start_mark.line + 1)
        return ConfigError(message, path=self._document.path, line=line, key=dotted(steps))


Key = str | tuple[str, ...]

_KINDS = {"string": "text", "integer": "a whole number", "number": "a number", "boolean": "true or false"}
_KINDS |= {"array": "a list", "object": "a mapping", "null": "null"}
_SWITCHES = {"on": True, "off": False}
_LIMITS = {"minimum": "at least", "maximum": "at most"}
_LIMITS |= {"exclusiveMinimum": "more than", "exclusiveMaximum": "less than"}


def checked(document: Document) -> JsonDict:
    """The settings that a document holds. Raises at its first mistake, with file, line and key."""
    if document.value is not None and not isinstance(document.value, dict):
        raise ConfigError("must be a mapping of sections, such as `files:`", path=document.path, line=1)
    settings: JsonDict = completed(document.value or {}, _schema())
    problems = [(document.line_of(steps), dotted(steps), message) for steps, message in _problems(settings)]
    if problems:
        line, key, message = min(problems, key=lambda problem: problem[0] or 0)
        raise ConfigError(message, path=document.path, line=line, key=key)
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
    if isinstance(value, int | float):
        return int(value) if isinstance(value, int) else float(value)
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
            raise ConfigError(f"unknown key; {hint(step, properties)}", key=here)
        schema = properties.get(step) or named
    return schema


def hint(word: str, known: Iterable[str], *, prefix: str = "") -> str:
    """For someone who wrote `word`; known words are shown with the prefix."""
    known = sorted(known)
    if not known:
        return "it ends in a name of your choice"
    near = nearest(word, known)
    return f"did you mean {prefix}{near}?" if near else f"known: {', '.join(prefix + name for name in known)}"


_schema = cache(json_schema)


@cache
def _validator() -> jsonschema_rs.Validator:
    return jsonschema_rs.validator_for(_schema())


def _problems(settings: JsonDict) -> Iterable[tuple[Steps, str]]:
    for error in _validator().iter_errors(settings):
        steps: Steps = tuple(error.instance_path)
        kind, details = error.kind.name, error.kind.as_dict()
        if kind == "additionalProperties":
            known = schema_at(steps)["properties"]
            for key in details["unexpected"]:
                yield (*steps, key), f"unknown key; {hint(key, known)}"
        else:
            # The validator has no infinity and shows null for it, so the value is looked up.
            value: Any = settings
            for step in steps:
                value = value[step]
            yield steps, _message(kind, details, _shown(value)) or error.message


def _message(kind: str, details: JsonDict, shown: str) -> str:
    if kind == "type":
        return f"must be {' or '.join(_KINDS[name] for name in sorted(details['types']))}, not {shown}"
    if kind == "enum":
        return f"must be one of {', '.join(map(str, details['options']))}; not {shown}"
    if kind in _LIMITS:
        return f"must be {_LIMITS[kind]} {details['limit']}, not {shown}"
    return {"minLength": "must not be empty text", "propertyNames": "must not have an empty name in it"}.get(kind, "")


def _shown(value: Any) -> str:
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    if value is None:
        return "empty (null)"
    if isinstance(value, int) and value.bit_length() > 200:
        return "a number of more than 60 digits"  # Python refuses to print one of some thousand
    text = repr(value) if isinstance(value, str) else str(value).lower()
    return text if len(text) <= 60 else text[:57] + "..."


def completed(value: Any, schema: JsonDict) -> Any:
    """The same settings, with `{}` for a section that has only its name (all of its lines may be commented out), true and false
    for `on` and `off`, and for a section that is `on` or `off` as a whole what it has of `enabled`."""
    kinds, properties = schema.get("type", ()), schema.get("properties", {})
    if isinstance(value, str) and "string" not in kinds and ("boolean" in kinds or "enabled" in properties):
        value = _SWITCHES.get(value.lower(), value)
    if kinds != "object":
        return value
    if value is None:
        return {}
    if isinstance(value, bool) and "enabled" in properties:
        return {"enabled": value}
    if not isinstance(value, dict):
        return value
    named = schema["additionalProperties"] or {}
    return {key: completed(item, properties.get(key, named)) for key, item in value.items()}


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
