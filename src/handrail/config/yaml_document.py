"""Read YAML text into plain values that remember their lines.

The nodes are walked here, instead of loading through a constructor, because a configuration wants less than YAML
offers and better errors: every key's line, no tags, dates or binary, no key twice, a bound on what aliases unfold to.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.composer import Composer
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode
from ruamel.yaml.reader import ReaderError

from ..errors import ConfigError
from .files import MAX_BYTES

Steps = tuple[str | int, ...]

# The parser takes some 50 µs a value, so this is a second of work.
_MAX_VALUES = 20_000
_MAX_DEPTH = 20
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
    """The document in `text`. `path` is what errors name as its source."""
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
        raise ConfigError(_syntax_problem(error), path=path, line=_line_of_problem(error, text)) from None
    except ConfigError as error:
        raise ConfigError(str(error), path=path, line=error.line) from None
    except (YAMLError, ValueError, LookupError, AssertionError, TypeError, AttributeError) as error:
        # What the parser lets slip on text that is nothing like YAML.
        raise ConfigError(f"is not valid YAML: {error}", path=path) from None
    if yaml.resolver.processing_version == (1, 1):
        raise ConfigError(
            "asks for YAML 1.1, where `no` and `off` are not text; remove the %YAML line", path=path, line=1
        )
    return node


def _syntax_problem(error: Any) -> str:
    problem = error.problem or "it cannot be parsed"
    if "'\\t'" in problem:
        problem += "; indent with spaces, not tabs"
    elif "stream end" in problem or "end of stream" in problem:
        problem += "; it seems cut off"
    context = f" ({error.context})" if error.context else ""
    return f"is not valid YAML: {problem}{context}"


def _line_of_problem(error: Any, text: str) -> int | None:
    mark = error.problem_mark or error.context_mark
    # The end of the stream is on the line after the last; an editor cannot go there.
    return min(mark.line, len(text.splitlines()) - 1) + 1 if mark else None


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
        construct = {
            "bool": self._constructor.construct_yaml_bool,
            "int": self._constructor.construct_yaml_int,
            "float": self._constructor.construct_yaml_float,
        }.get(kind)
        shown = repr(node.value[:60])
        if construct is None:
            raise self._error(f"{shown} is read as a YAML {kind}; put it in quotes to make it text", steps, node)
        try:
            return construct(node)
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
