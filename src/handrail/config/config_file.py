"""Change a configuration file key by key, keeping its comments, order and quotes."""

import copy
import dataclasses
import os
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import takewhile
from pathlib import Path
from typing import Any

from ..errors import ConfigError
from ..settings.schema import Config
from ..types import JsonDict
from .paths import config_path, locked, read_text, state_dir, write_text
from .store import Confirmed, read_config
from .strength import settings_in
from .validation import Document, Key, build, check, checked, known_steps, parse, plain, schema_at


class ConfigFile:
    """One configuration file, read and changed key by key. A change keeps the file's comments, order and quotes. It is also
    confirmed, in `confirmed`; for the user's own file by default. What else waits in the file is not."""

    def __init__(self, path: str | os.PathLike[str] | None = None, confirmed: Confirmed | None = None) -> None:
        self.path = config_path() if path is None else Path(path)
        self._confirmed = Confirmed(state_dir()) if path is None else confirmed

    def load(self, environ: Mapping[str, str] | None = None) -> Config:
        """The file's settings, overridden by those in `environ`, if that is given."""
        return read_config(self.path, environ)

    def get(self, key: Key) -> Any:
        """The value of a key such as `files.roots`: the file's, else the default. None for an undefined name."""
        steps = known_steps(key)
        value = plain(dataclasses.asdict(self.load()))
        for step in steps:
            if step not in value:
                return copy.deepcopy(schema_at(steps).get("default"))
            value = value[step]
        return value

    def set(self, key: Key, value: Any) -> Config:
        """Give `key` a value. Text from a command line goes through `parse_value` first."""
        steps = known_steps(key)

        def change(settings: JsonDict) -> None:
            for step in steps[:-1]:
                settings = settings.setdefault(step, {})
            settings[steps[-1]] = value

        return self.update(change)

    def unset(self, key: Key) -> Config:
        """Remove `key` from the file, so that its default applies again."""
        steps = known_steps(key)

        def change(settings: JsonDict) -> None:
            for step in steps[:-1]:
                settings = settings.get(step, {})
            settings.pop(steps[-1], None)

        return self.update(change)

    def update(self, function: Callable[[JsonDict], object]) -> Config:
        """Let `function` change the file's settings in place, while no other writer can; returns the new configuration. It gets
        the file's own settings, without defaults. If it raises, or leaves invalid settings, nothing is written. It must not
        write to this file itself: the lock is taken."""
        with locked(self.path) as target:
            document, settings = _settings_in(read_text(target) or "", self.path)
            wanted = copy.deepcopy(settings)
            function(wanted)
            wanted = plain(wanted)
            check(wanted, path=str(self.path))
            if not same(wanted, settings):
                write_text(target, _changed_text(document, settings, wanted))
        config = build(wanted)
        if self._confirmed is not None:
            self._confirm(function, config, self._confirmed)
        return config

    def _confirm(self, function: Callable[[JsonDict], object], config: Config, confirmed: Confirmed) -> None:
        """Let the same change hold in what was confirmed before."""
        before = confirmed.config(self.path)
        if before is not None:
            settings = settings_in(before)
            function(settings)
            check(settings, path=str(self.path))
            config = build(settings)
        confirmed.confirm(self.path, config)


def _settings_in(text: str, path: Path) -> tuple[Document, JsonDict]:
    """The settings that a file's text holds, checked."""
    document = parse(text, path=str(path))
    return document, checked(document)


def _changed_text(document: Document, settings: JsonDict, wanted: JsonDict) -> str:
    try:
        text = rewritten(document, settings, wanted)
        understood = same(_settings_in(text, Path(document.path))[1], wanted)
        reason = "it is written in an unusual way"
    except ConfigError as error:
        understood, reason = False, str(error)
    if not understood:
        raise ConfigError(f"cannot be changed safely ({reason}); edit it by hand", path=document.path)
    return text


Node = Any  # one of ruamel's nodes, which are typed too loosely to help


def rewritten(document: Document, old: dict[str, Any], new: dict[str, Any]) -> str:
    """The text of a document that says `old`, changed so that it says `new`. ConfigError says why it cannot be."""
    if document.has_aliases:
        raise ConfigError("it uses YAML aliases, so one change could reach several places")
    edit = _Edit(document.text)
    root: Node = document.node
    if root is None or _is_empty(root):
        edit.insert(len(edit.text), "".join(entry(key, value, indent=0) for key, value in new.items()))
    elif root.flow_style:
        edit.flow(root, old, new)
    else:
        edit.block_mapping(root, old, new)
    return edit.result()


def same(one: Any, other: Any) -> bool:
    """Equal in value and type: `1`, `1.0` and `true` are three values in YAML."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(item, other[key]) for key, item in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


class _Edit:
    """Collects replacements of parts of one text, then makes them all. Every other character stays as it was. ruamel's own
    round trip re-indents the file, and ties a comment to the value before it: a list item that is added last lands behind the
    comment of the next section. So the text is edited where the parser says that a value begins and ends. What is written in a
    way not foreseen here is not guessed at: the caller parses the result and compares."""

    def __init__(self, text: str) -> None:
        self.text = text if not text or text.endswith("\n") else text + "\n"
        self._splices: list[tuple[int, int, str]] = []

    def insert(self, at: int, text: str) -> None:
        self.replace(at, at, text)

    def replace(self, start: int, end: int, text: str) -> None:
        self._splices.append((start, end, text))

    def result(self) -> str:
        parts, position = [], 0
        # The sort is stable: what is inserted at one place stays in the order in which it was asked for.
        for start, end, text in sorted(self._splices, key=lambda splice: splice[:2]):
            if start < position:
                raise ConfigError("two changes meet in one place")
            parts += [self.text[position:start], text]
            position = end
        changed = "".join([*parts, self.text[position:]])
        return changed.replace("\r\n", "\n").replace("\n", "\r\n") if "\r\n" in self.text else changed

    def block_mapping(self, node: Node, old: dict[str, Any], new: dict[str, Any]) -> None:
        added = dict(new)
        for key_node, value_node in node.value:
            key = key_node.value
            added.pop(key, None)
            if key not in new:
                self._drop_lines(key_node, self._end_of_entry(key_node, value_node))
            elif not same(old[key], new[key]):
                self._value(key_node, value_node, old[key], new[key])
        first, last = node.value[0], node.value[-1]
        below = self._next_line(self._end_of_entry(*last))
        for key, value in added.items():
            self.insert(below, entry(key, value, indent=first[0].start_mark.column))

    def _value(self, key_node: Node, node: Node, old: Any, new: Any) -> None:
        both_filled = bool(old) and bool(new) and type(old) is type(new)
        colon = self._after_colon(key_node)
        if _is_empty(node):
            # A comment behind the key stays behind the key; a list or mapping begins on the next line.
            filling = after_colon(new, indent=key_node.start_mark.column)
            if filling.startswith("\n"):
                self.insert(self._next_line(colon), filling[1:] + "\n")
            else:
                self.insert(colon, filling)
        elif not _is_block_collection(node):
            self.flow(node, old, new)
        elif both_filled and isinstance(new, dict):
            self.block_mapping(node, old, new)
        elif both_filled and isinstance(new, list):
            self._block_list(node, old, new)
        else:
            for item in node.value:
                is_entry = isinstance(item, tuple)
                self._drop_lines(item[0] if is_entry else item, self._end_of_item(item))
            self.insert(colon, " " + inline(new))

    def _block_list(self, node: Node, old: list[Any], new: list[Any]) -> None:
        head = _common_length(old, new)
        tail = _common_length(old[head:][::-1], new[head:][::-1])
        gone, come = node.value[head : len(old) - tail], new[head : len(new) - tail]
        for item, value in zip(gone, come, strict=False):
            self.replace(item.start_mark.index, self._end(item), inline(value, quote=item.style))
        for item in gone[len(come) :]:
            self._drop_lines(item, self._end(item))
        if added := come[len(gone) :]:
            position = head + len(gone)
            neighbour = node.value[max(position - 1, 0)]
            line = self._line_start(neighbour)
            dash = self.text[line : neighbour.start_mark.index]
            at = self._next_line(self._end(neighbour)) if position else line
            self.insert(at, "".join(f"{dash}{inline(value, quote=neighbour.style)}\n" for value in added))

    def flow(self, node: Node, old: Any, new: Any) -> None:
        """Change a scalar, or a collection in brackets."""
        start, end = node.start_mark.index, self._end(node)
        if isinstance(old, list) and isinstance(new, list) and old and same(old, new[: len(old)]):
            last = node.value[-1]
            added = "".join(f", {inline(value, quote=last.style)}" for value in new[len(old) :])
            self.insert(last.end_mark.index, added)
            return
        if self._has_comment(node):
            raise ConfigError("comments between brackets would be lost")
        self.replace(start, end, self._flow_text(node, old, new))

    def _flow_text(self, node: Node, old: Any, new: Any) -> str:
        if same(old, new):
            return self._source(node)
        # A section may also be written as `on` or `off`.
        if isinstance(old, dict) and isinstance(new, dict) and not isinstance(node.value, str):
            kept = [(key, value) for key, value in node.value if key.value in new]
            changed = ((key, self._flow_text(value, old[key.value], new[key.value])) for key, value in kept)
            parts = [f"{self._source(key)}: {text}" for key, text in changed]
            parts += [f"{inline(key)}: {inline(value)}" for key, value in new.items() if key not in old]
            return "{" + ", ".join(parts) + "}"
        if isinstance(old, list) and isinstance(new, list):
            written = {value: self._source(item) for value, item in zip(old, node.value, strict=True)}
            return "[" + ", ".join(written.get(value) or inline(value) for value in new) + "]"
        return inline(new, quote=getattr(node, "style", None) or "")

    def _has_comment(self, node: Node) -> bool:
        position, between = node.start_mark.index, ""
        for scalar in _scalars(node):
            between += self.text[position : scalar.start_mark.index]
            position = scalar.end_mark.index
        return "#" in between + self.text[position : node.end_mark.index]

    def _source(self, node: Node) -> str:
        return self.text[node.start_mark.index : node.end_mark.index]

    def _drop_lines(self, node: Node, end: int) -> None:
        self.replace(self._line_start(node), self._next_line(end), "")

    def _line_start(self, node: Node) -> int:
        start = self.text.rfind("\n", 0, node.start_mark.index) + 1
        if self.text[start : node.start_mark.index].strip(" ") not in ("", "-"):
            raise ConfigError("several values share a line")
        return start

    def _next_line(self, index: int) -> int:
        return self.text.find("\n", index) + 1 or len(self.text)

    def _end_of_entry(self, key_node: Node, value_node: Node) -> int:
        return self._after_colon(key_node) if _is_empty(value_node) else self._end(value_node)

    def _end_of_item(self, item: Node | tuple[Node, Node]) -> int:
        return self._end_of_entry(*item) if isinstance(item, tuple) else self._end(item)

    def _end(self, node: Node) -> int:
        # The parser ends a block collection where the next thing begins, which is behind the comments in between.
        if _is_block_collection(node):
            return self._end_of_item(node.value[-1])
        end: int = node.end_mark.index
        # A block scalar ends behind its last line break.
        while end > node.start_mark.index and self.text[end - 1] in "\r\n":
            end -= 1
        return end

    def _after_colon(self, key_node: Node) -> int:
        end: int = key_node.end_mark.index
        rest = self.text[end:].lstrip(" ")
        if not rest.startswith(":"):
            raise ConfigError("a key and its colon are apart")
        return len(self.text) - len(rest) + 1


def _is_empty(node: Node) -> bool:
    """A value that is not written at all: `key:` and nothing behind it."""
    return bool(node.start_mark.index == node.end_mark.index)


def _is_block_collection(node: Node) -> bool:
    return not isinstance(node.value, str) and not node.flow_style


def _scalars(node: Node) -> Iterator[Node]:
    if isinstance(node.value, str):
        yield node
        return
    for item in node.value:
        for child in item if isinstance(item, tuple) else (item,):
            yield from _scalars(child)


def _common_length(one: list[Any], other: list[Any]) -> int:
    return len(list(takewhile(bool, map(same, one, other))))


# Text that means itself without quotes, in block and in flow style, to YAML 1.1 and 1.2 readers alike. It is narrower
# than what YAML allows: quotes are never wrong.
_PLAIN = re.compile(r"(?:[A-Za-z_/]|~/|\./)(?:[\w/.@%+=~-]| (?![ #]))*(?<! )", re.ASCII)
_TAKEN = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})


def inline(value: Any, *, quote: str = "") -> str:
    """The value on one line. `quote` is the kind of quotes that text had before, which is kept where it can be."""
    if isinstance(value, str):
        return _text(value, quote)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{inline(key)}: {inline(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(inline, value)) + "]"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    text = repr(value)
    # `1e+16` is a float to YAML only with a dot in it.
    return text.replace("e", ".0e") if "e" in text and "." not in text else text


def entry(key: str, value: Any, *, indent: int) -> str:
    """`key: value` as lines of their own, lists and mappings one line an item."""
    return f"{' ' * indent}{inline(key)}:{after_colon(value, indent=indent)}\n"


def after_colon(value: Any, *, indent: int) -> str:
    """What follows the colon of a key at column `indent`."""
    below = indent + 2
    if value and isinstance(value, Mapping):
        return "\n" + "".join(entry(key, item, indent=below) for key, item in value.items()).removesuffix("\n")
    if value and isinstance(value, list):
        return "".join(f"\n{' ' * below}- {inline(item)}" for item in value)
    return " " + inline(value)


def _text(text: str, quote: str) -> str:
    if quote not in ("'", '"') and _PLAIN.fullmatch(text) and text.lower() not in _TAKEN:
        return text
    # Single quotes know no escapes: good for commands, impossible for control characters.
    if text.isprintable() and (quote == "'" or (quote != '"' and ('"' in text or "\\" in text))):
        return "'" + text.replace("'", "''") + "'"
    return '"' + "".join(_escaped(character) for character in text) + '"'


def _escaped(character: str) -> str:
    if character.isprintable():
        return f"\\{character}" if character in ('"', "\\") else character
    return {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(character) or f"\\U{ord(character):08x}"
