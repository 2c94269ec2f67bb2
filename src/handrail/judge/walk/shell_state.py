"""The shell's variables, files and directory as the walk reads and changes them."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ..grammar.syntax import Assignment
from ..rules import on_read, on_write
from ..values import paths
from ..values.assessment import Span
from ..values.word_values import (
    EMPTY,
    NO_TAINTS,
    UNKNOWN,
    Arg,
    Array,
    Either,
    Stored,
    Taint,
    Taints,
    Value,
    joined,
    unknown,
)
from .judgement import Judgement
from .path_exploration import Worlds
from .source_map import Frame
from .state import State

if TYPE_CHECKING:
    from .expansion import Expander

_ENVIRONMENT = frozenset(("HOME", "PATH", "SHELL", "BASH", "IFS", "PWD"))
_MAX_ELEMENTS = 256
_SECRET_CLASSES = frozenset(("credential", "credential-name", "history"))
_CREDENTIAL: Taints = frozenset((Taint.CREDENTIAL,))
_PRIVATE: Taints = frozenset((Taint.PRIVATE,))
_WIDE: Taints = frozenset((Taint.WIDE,))
_EMPTIES_STORE = r"(?im)^\s*(?:flushall|flushdb|flush_all|shutdown|config set|slaveof|replicaof)\b"
_USER_LISTS = frozenset(("/etc/passwd", "/etc/group"))


_BUILT = re.compile(
    r"(?:^|/)(?:\.?v?env|node_modules|\.tox|\.nox|target|build|dist|out)(?:/|$)|"
    r"(?:^|/)(?:gradlew|mvnw|configure|autogen\.sh|bootstrap|manage\.py)$"
)
"""What a project's own tools make or are: running them is what a build does anyway."""
_HERE = frozenset(("", ".", ".."))
_normalised = functools.lru_cache(4096)(paths.normalise)


class ShellState:
    """What one shell sees."""

    expander: Expander
    frame: Frame
    place: Span

    def __init__(self, judgement: Judgement, state: State) -> None:
        self.judgement = judgement
        self.state = state
        self.worlds = Worlds(state)
        self.pick = self.worlds.pick
        self._level = 0
        """How many shells have been started inside one another."""
        self._levels: dict[str, int] = {}
        self._perhaps: dict[int, tuple[Value, Either]] = {}
        """By the identity of a value, which is kept so that no other gets it: the same, or nothing."""
        self.exported: set[str] = set(_ENVIRONMENT)
        self.references: dict[str, str] = {}
        """`declare -n`: names that stand for another."""

    # Findings

    def report(self, rule_id: str, argv: Sequence[str]) -> None:
        self.judgement.report(rule_id, argv, self.span(argv))

    def span(self, argv: Sequence[str]) -> Span:
        """Where a command line stands in the judged text; the whole simple command when its words are not its own."""
        words = [word for arg in argv if (word := getattr(arg, "word", None)) is not None]
        inside = [word for word in words if self.place[0] <= word.start and word.end <= self.place[1]]
        if inside and len(inside) == len(words):
            return self.frame.span(min(word.start for word in inside), max(word.end for word in inside))
        return self.frame.span(*self.place)

    # Variables

    def lookup(self, name: str) -> Stored | None:
        name = self.references.get(name, name)
        if name in ("@", "*"):
            arguments = self.state.arguments
            if arguments is None:
                return None
            return Array({str(number): value for number, value in enumerate(arguments)})
        if name.isdigit():
            return self._argument(int(name))
        if name == "#":
            arguments = self.state.arguments
            return None if arguments is None else Value(str(len(arguments)))
        if name == "PWD":
            return self.state.cwd
        value = self.state.variables.get(name)
        if self._level and value is not None:
            return self._as_child_sees(name, value)
        return value

    def _argument(self, number: int) -> Value | None:
        if number == 0:
            return self.state.settings.get("program")
        arguments = self.state.arguments
        if arguments is None:
            return None
        return arguments[number - 1] if number <= len(arguments) else EMPTY

    def _as_child_sees(self, name: str, value: Stored) -> Stored:
        """A shell that was started sees what was exported; for the rest both are possible (`set -a`, `export -p`)."""
        if name in self.exported or self._levels.get(name, 0) >= self._level or isinstance(value, Array):
            return value
        options = value.options if isinstance(value, Either) else (value,)
        _, both = self._perhaps.setdefault(id(value), (value, Either((*options, None))))
        return both

    def assign(self, name: str, value: Stored | None) -> None:
        name = self.references.get(name, name)
        if self._level:
            self._levels[name] = self._level
        self.state.assign(name, value)

    @contextlib.contextmanager
    def child_shell(self) -> Iterator[None]:
        """A shell that was started as a program: it has only what was exported."""
        self._level += 1
        try:
            yield
        finally:
            self._level -= 1

    @property
    def level(self) -> int:
        return self._level

    def make_assignment(self, node: Assignment) -> None:
        """Do what `name=value` says."""
        old = self.state.variables.get(self.references.get(node.name, node.name))
        if node.elements is not None:
            self.assign(node.name, self._array(node, old))
            return
        value = self.expander.one(node.value)
        if node.index is not None:
            self.assign(node.name, self._with_element(old, self.expander.one(node.index), value, appends=node.appends))
        elif node.appends:
            first = old.items.get("0", EMPTY) if isinstance(old, Array) else old
            if isinstance(first, Either):
                first = self.worlds.pick(id(first), first)
            self.assign(node.name, joined([first if first is not None else unknown(), value]))
        else:
            self.assign(node.name, value)

    def _array(self, node: Assignment, old: Stored | None) -> Array:
        items: dict[str, Value] = {}
        associative = isinstance(old, Array) and old.associative
        if node.appends and isinstance(old, Array):
            items.update(old.items)
        elif node.appends and old is not None:
            items["0"] = old  # type: ignore[assignment]
        following = len(items)
        for index, word in node.elements or ():
            if index is not None:
                key = self.expander.one(index).text
                number = None if associative else self.expander.parameters.number(Value(key))
                items[key if number is None else str(number)] = self.expander.one(word)
                following = (number if number is not None else following) + 1
                continue
            for field in self.expander.fields(word):
                items[str(following)] = field.value()
                following += 1
        return Array(items, associative=associative)

    def _with_element(self, old: Stored | None, index: Value, value: Value, *, appends: bool) -> Stored:
        items = dict(old.items) if isinstance(old, Array) else {} if old is None else {"0": old}
        associative = isinstance(old, Array) and old.associative
        number = None if associative else self.expander.parameters.number(index)
        key = index.text if associative else UNKNOWN if number is None else str(number)
        if len(items) > _MAX_ELEMENTS:
            return unknown(value.taints)
        if UNKNOWN in key:  # any of them may have been set
            return Array(
                {name: unknown(item.taints | value.taints) for name, item in items.items()}
                or {"0": unknown(value.taints)},
                associative=associative,
            )
        items[key] = joined([items.get(key, EMPTY), value]) if appends else value
        if not associative:
            items = dict(sorted(items.items(), key=lambda item: int(item[0]) if re.fullmatch(r"-?\d+", item[0]) else 0))
        return Array(items, associative=associative)

    # Files

    @property
    def cwd(self) -> str:
        if self.state.directory is not None:
            return self.state.directory
        value = self.state.cwd
        assert isinstance(value, Either)
        return (self.worlds.pick(id(value), value) or EMPTY).text

    def path(self, path: str) -> str:
        """A path as files are remembered by it."""
        return _normalised(str(path), self.cwd, self.judgement.project)

    def classes(self, path: str) -> frozenset[str]:
        return paths.classes(path, self.cwd, self.judgement.project)

    def known_file(self, path: str) -> Value | None:
        """What a file holds, if the command itself has made it."""
        if not self.state.files:
            return None
        found = self.written_file(path)
        return found if found is not None or not self.state.has_trees else self._in_tree(self.path(path))

    def written_file(self, path: str) -> Value | None:
        """What a file holds that the command has named as it wrote it, not only a directory above it."""
        files = self.state.files
        if not files or ((name := path.rpartition("/")[2]) not in self.state.file_names and name not in _HERE):
            return None
        found = files.get(path)
        return found if found is not None else files.get(self.path(path))

    def _in_tree(self, path: str) -> Value | None:
        """What a file holds below a directory of which that is known as a whole."""
        if _BUILT.search(path) or path.startswith("/dev/"):
            return None
        while "/" in path.rstrip("/"):
            path = path.rstrip("/").rpartition("/")[0] + "/"
            if (found := self.state.files.get(path)) is not None:
                return found
        return self.state.files.get("./") if path[:1] not in ("/", "~") else None

    def read_file(self, path: Arg) -> Value:
        known = self.known_file(path)
        if known is not None:
            return known
        self.judgement.add(on_read(path, self.cwd, self.judgement.project), ["<", path], self.span([path]))
        if path.startswith(("/dev/tcp/", "/dev/udp/")):
            return unknown([Taint.NETWORK])
        return unknown(self.file_taints(path))

    def file_taints(self, path: str) -> Taints:
        """What is private in a file that was there before."""
        if not self.classes(path).isdisjoint(_SECRET_CLASSES):
            return _CREDENTIAL
        if path.startswith(("/run/", "/var/run/")):  # numbers of processes that others have started
            return _WIDE
        return _PRIVATE if path in _USER_LISTS else NO_TAINTS

    def on_write(self, target: Arg, operator: str, content: Value) -> None:
        empties = operator in (">", ">|", "&>") and not content.text
        matches = on_write(target, self.cwd, self.judgement.project, empties=empties)
        if empties and not matches and Taint.WIDE in target.taints:
            self.report("redirect.data", [operator, target])
        if matches:
            self.judgement.add(matches, [operator, target], self.span([target]))
        if target.startswith(("/dev/tcp/", "/dev/udp/")):
            if Taint.CREDENTIAL in content.taints:
                self.report("exfil.pipe", [operator, target])
            elif content.text == UNKNOWN:
                self.report("rce.reverse_shell", [operator, target])
            elif re.search(_EMPTIES_STORE, content.text):
                self.report("sql.destructive", [operator, target])
