"""The variables of a shell: what a name stands for, what assigning to it does, and what else may change it.

A value that is not certain (one of several, changed by a trap, of a variable with an attribute) is kept as all that it may
be. Some names are more than variables: the shell runs what `PROMPT_COMMAND` holds, and `BASH_CMDS` says what a name runs.
"""

import re
from collections.abc import Sequence
from typing import Protocol

from ..grammar.syntax import Assignment
from ..values.data_files import Patterns, Words
from ..values.taints import Taints, taints_of
from ..values.word_values import EMPTY, UNKNOWN, Array, Either, Stored, Value, either, joined, unknown
from . import expansion
from .state import State

_WORDS = Words(__file__)
_RE = Patterns(__file__)
_ELEMENT_COST = 16
_MAX_ELEMENTS = 256
_MAX_SLOTS = 8


class Shell(expansion.Shell, Protocol):
    """What the variables need of the walk that they belong to."""

    expander: expansion.Expander
    state: State

    def is_foreign(self, path: str) -> bool: ...
    def notice(self, name: str, value: Stored | None) -> None: ...
    def report(self, rule_id: str, argv: Sequence[str]) -> None: ...


class Variables:
    """Names and values, on the walk's state: everything that reads or sets a variable goes through here."""

    def __init__(self, walk: Shell) -> None:
        self._walk = walk
        self._state = walk.state
        self.exported: set[str] = set(_WORDS.environment)
        self.references: dict[str, str] = {}
        """`declare -n`: names that stand for another; empty while that is not known yet."""
        self.attributes: dict[str, str] = {}
        """Letters of `declare`: i for integers, l and u for letter case, r for what cannot be changed any more."""
        self._slots: dict[str, Value] = {}
        """What a trap may set a variable to at any time."""
        self.level = 0
        """How many shells have been started inside one another."""
        self._levels: dict[str, int] = {}
        self._perhaps: dict[int, tuple[Value, Either]] = {}
        """By the identity of a value, which is kept so that no other gets it: the same, or nothing."""

    # Reading

    def lookup(self, name: str) -> Stored | None:
        if self.references:
            name = self._target(name)
        state = self._state
        if name in ("@", "*"):
            arguments = state.arguments
            return None if arguments is None else Array({str(place): value for place, value in enumerate(arguments)})
        if name.isdigit():
            return self._argument(int(name))
        if name == "#":
            return None if state.arguments is None else Value(str(len(state.arguments)))
        value = state.variables.get(name)
        if name == "PWD" and value is None:
            return state.cwd
        if self.level and value is not None:
            return self._as_child_sees(name, value)
        return value

    def inherited(self, name: str) -> str | None:
        """What a program that is started finds in its environment; None when that is not known."""
        value = self.lookup(name) if name in self.exported and name != "HOME" else None
        return value.text if isinstance(value, Value) and value.known else None

    def _argument(self, number: int) -> Value | None:
        if number == 0:
            return self._state.settings.get("program")
        arguments = self._state.arguments
        if arguments is None:
            return None
        return arguments[number - 1] if number <= len(arguments) else EMPTY

    def _as_child_sees(self, name: str, value: Stored) -> Stored:
        """A shell that was started sees what was exported; for the rest both are possible (`set -a`, `export -p`)."""
        if name in self.exported or self._levels.get(name, 0) >= self.level or isinstance(value, Array):
            return value
        options = value.options if isinstance(value, Either) else (value,)
        return self._perhaps.setdefault(id(value), (value, Either((*options, None))))[1]

    def _target(self, name: str) -> str:
        """The name that references lead to."""
        for _ in range(_MAX_SLOTS):
            name = self.references.get(name) or name
        return name

    # Setting

    def assign(self, name: str, value: Stored | None) -> None:
        """Set a variable by its plain name; None unsets it."""
        if self.references:
            name = self._refer(name, value)
            if "[" in name or UNKNOWN in name:
                self.assign_to(Value(name), value if isinstance(value, Value) else unknown())
                return
        if self.level:
            self._levels[name] = self.level
        if name in self._slots:
            value = self._mixed([value, self._slots[name]])
        if name in self.attributes and value is not None:
            value = self._with_attributes(name, value)
        if name in _WORDS.computed:
            value = unknown()
        self._state.assign(name, value)
        self._walk.notice(name, value)

    def assign_to(self, target: Value, value: Value) -> None:
        """Set what a builtin names by a text: `x`, `a[1]`. An unknown name may be any variable's."""
        if isinstance(target, Either):
            for option in target.options:
                if option is not None:
                    mark = self._state.mark()
                    self.assign_to(option, value)
                    self._state.perhaps(mark)
            return
        if UNKNOWN in target.text.partition("[")[0]:
            self.forget()
        elif match := _RE.element.fullmatch(target.text):
            self.set_element(match[1], Value(match[2]), value, appends=False)
        elif _RE.name.fullmatch(target.text):
            self.assign(target.text, value)

    def forget(self) -> None:
        """Something was assigned to a name that is not known: no variable that the command has set is known any more."""
        for name, value in list(self._state.variables.items()):
            if name not in _WORDS.environment and name not in self._state.given:
                self._state.assign(name, unknown(_taints(value)))

    def unset(self, name: str) -> None:
        match = _RE.element.fullmatch(name)
        if match is None:
            self.assign(name, None)
            return
        old = self._state.variables.get(self._target(match[1]))
        if not isinstance(old, Array):
            return
        items = dict(old.items)
        key = match[2] if old.associative else str(self._walk.expander.number(Value(match[2])))
        if key in items:
            del items[key]
        else:  # which one is not known, or it counts from the end
            items = {index: unknown(item.taints) for index, item in items.items()}
        self.assign(match[1], Array(items, associative=old.associative))

    def may_become(self, name: str, value: Stored | None) -> None:
        """A trap sets it, whenever that runs."""
        new = value if isinstance(value, Value) else unknown()
        before = self._slots.get(name)
        self._slots[name] = new if before is None else either([before, new]) or new
        self.assign(name, self._state.variables.get(name))

    def _refer(self, name: str, value: Stored | None) -> str:
        """What is meant by a name that may be a reference; the first text assigned to an empty one is its target."""
        if self.references.get(name) != "":
            return self._target(name)
        self.references[name] = value.text if isinstance(value, Value) and value.known else UNKNOWN
        return name

    def _mixed(self, values: list[Stored | None]) -> Stored | None:
        """One of these."""
        plain = [value for value in values if not isinstance(value, Array)]
        if len(plain) == len(values):
            return either(plain)
        return unknown(taints_of([unknown(_taints(value)) for value in values if value is not None]))

    def _with_attributes(self, name: str, value: Stored) -> Stored:
        """What `declare -i`, `-l`, `-u` and `readonly` make of a new value: that, or the value itself, as they may not hold."""
        letters = self.attributes[name]
        if isinstance(value, Array):
            for item in value.items.values():
                self._with_attributes(name, item)
            return value
        if isinstance(value, Either):
            options: list[Stored | None] = [option for option in value.options if option is not None]
            changed = [self._with_attributes(name, option) for option in options if option is not None]
            return self._mixed([*value.options, *changed]) or value
        results: list[Stored | None] = [value]
        if "i" in letters:
            number = self._walk.expander.number(value)
            results = [unknown(value.taints) if number is None else Value(str(number)), value]
        if "l" in letters:
            results.append(Value(value.text.lower(), value.taints))
        if "u" in letters:
            results.append(Value(value.text.upper(), value.taints))
        if "r" in letters:
            results.append(self._state.variables.get(name))
        return self._mixed(results) or value

    # Assignments as they are written

    def make(self, node: Assignment) -> None:
        """Carry out `name=value`."""
        expander = self._walk.expander
        old = self._state.variables.get(self._target(node.name) if self.references else node.name)
        if node.elements is not None:
            self.assign(node.name, self._array(node, old))
            return
        value = expander.one(node.value)
        if node.index is not None:
            self.set_element(node.name, expander.one(node.index), value, appends=node.appends)
        elif node.appends:
            first = old.items.get("0", EMPTY) if isinstance(old, Array) else old
            if isinstance(first, Either):
                first = self._walk.pick(id(first), first)
            whole = joined([first if first is not None else unknown(), value])
            if "i" in self.attributes.get(node.name, ""):
                expander.number(value)
                whole = unknown(whole.taints)
            new = Array({**old.items, "0": whole}, associative=old.associative) if isinstance(old, Array) else whole
            self.assign(node.name, new)
        else:
            self.assign(node.name, value)

    def set_element(self, name: str, index: Value, value: Value, *, appends: bool) -> None:
        """`name[index]=value`."""
        if name in _WORDS.tables:
            self._set_command(name, index, value)
        old = self._state.variables.get(self._target(name))
        self.assign(name, self._with_element(old, index, value, appends=appends))

    def _set_command(self, table: str, index: Value, value: Value) -> None:
        """`BASH_CMDS[ls]=/bin/rm`: the name runs something else from now on."""
        if not index.known or not value.known:
            self._walk.report("dynamic.command", [table, value.text])
            return
        if table == "BASH_CMDS" and self._walk.is_foreign(value.text):
            self._walk.report("env.inject", [table, value.text])
        self._state.alias(index.text, value)

    def _array(self, node: Assignment, old: Stored | None) -> Array:
        expander = self._walk.expander
        items: dict[str, Value] = {}
        associative = (isinstance(old, Array) and old.associative) or node.name in _WORDS.tables
        if node.appends and isinstance(old, Array):
            items.update(old.items)
        elif node.appends and old is not None:
            items["0"] = old  # type: ignore[assignment]
        last = next(reversed(items), "")
        following = int(last) + 1 if last.isdigit() else len(items)
        for index, word in node.elements or ():
            if index is not None:
                key = expander.one(index).text
                number = None if associative else expander.number(Value(key))
                value = expander.one(word)
                if node.name in _WORDS.tables:
                    self._set_command(node.name, Value(key), value)
                if number is None and not associative:
                    return Array({str(place): unknown() for place in range(_MAX_SLOTS)})
                items[key if number is None else str(number)] = value
                following = (number if number is not None else following) + 1
                continue
            for field in expander.fields(word):
                items[str(following)] = field.value()
                following += 1
        return Array(items, associative=associative)

    def _with_element(self, old: Stored | None, index: Value, value: Value, *, appends: bool) -> Stored:
        items = dict(old.items) if isinstance(old, Array) else {} if old is None else {"0": old}
        associative = isinstance(old, Array) and old.associative
        number = None if associative else self._walk.expander.number(index)
        key = index.text if associative else UNKNOWN if number is None or number < 0 else str(number)
        self._walk.spend(_ELEMENT_COST * len(items))
        if len(items) > _MAX_ELEMENTS:
            return unknown(value.taints)
        if UNKNOWN in key:  # any of them may have been set
            items = {name: unknown(item.taints | value.taints) for name, item in (items or {"0": value}).items()}
            return Array(items, associative=associative)
        items[key] = joined([items.get(key, EMPTY), value]) if appends else value
        if not associative:
            items = dict(sorted(items.items(), key=lambda item: int(item[0]) if re.fullmatch(r"-?\d+", item[0]) else 0))
        return Array(items, associative=associative)


def _taints(value: Stored) -> Taints:
    return taints_of(value.items.values()) if isinstance(value, Array) else value.taints
