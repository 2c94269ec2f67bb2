"""The builtins that declare variables: export, readonly, declare, local, typeset, unset; and indexes in the names they take."""

from __future__ import annotations

import re

from ..grammar.syntax import Assignment
from ..values.word_values import EMPTY, UNKNOWN, Arg, Array, Either, Value, joined, unknown
from .walk import Call, Walk


def _export(walk: Walk, call: Call) -> Value | None:
    """`export` and `readonly`."""
    exports = call.name == "export" and "-n" not in call.args
    for node in call.declared:
        walk.variables.make(node)
        _exported(walk, node.name, exports)
        _lock(walk, call.name, node.name)
    for arg in call.args:
        name = _assigned(walk, arg)
        if arg[:1] != "-":
            _exported(walk, name, exports)
            _lock(walk, call.name, name)
    return EMPTY if call.declared or not _only_options(call) else None


def _lock(walk: Walk, command: str, name: str) -> None:
    """What is assigned to it later may not take effect."""
    if command == "readonly":
        walk.variables.attributes[name] = walk.variables.attributes.get(name, "") + "r"


def _assigned(walk: Walk, arg: Arg) -> str:
    """Carry out an argument of the form `name=value`; returns the name."""
    name, equals, value = arg.partition("=")
    run_index(walk, arg)
    if arg[:1] == "-":
        return ""
    if equals:
        appends = name.endswith("+")
        name = name.removesuffix("+")
        new = Value(value, arg.taints, arg.word)
        if appends:
            old = walk.lookup(name)
            new = joined([old, new]) if isinstance(old, Value) else unknown(new.taints)
        walk.variables.assign_to(Value(name), new)
    elif UNKNOWN in name:
        walk.variables.forget()
    return name


def _only_options(call: Call) -> bool:
    """Whether no name is given: then these print everything that is set."""
    return all(arg[:1] == "-" for arg in call.args)


def _exported(walk: Walk, name: str, exports: bool) -> None:
    if exports:
        walk.variables.exported.add(name)
        walk.on_assign(name, walk.state.variables.get(name))


def _declare(walk: Walk, call: Call) -> Value | None:
    flags = "".join(arg[1:] for arg in call.args if arg[:1] == "-") + ("i" if call.name == "integer" else "")
    given: list[tuple[str, Assignment | Arg]] = [(node.name, node) for node in call.declared]
    given += [(arg.partition("=")[0], arg) for arg in call.args if arg[:1] not in ("-", "+")]
    for name, _ in given:
        if walk.locals is not None and "g" not in flags:
            walk.locals.setdefault(name, walk.state.variables.get(name))
        if "A" in flags:
            walk.assign(name, Array({}, associative=True))
    for name, node in given:
        if "n" in flags:
            _refer(
                walk,
                name,
                walk.expander.one(node.value) if isinstance(node, Assignment) else Value(node.partition("=")[2]),
            )
            continue
        _note_attributes(walk, name, flags)
        if isinstance(node, Assignment):
            walk.variables.make(node)
        else:
            _assigned(walk, node)
        if isinstance(node, Assignment) or "=" in node:
            _attributes(walk, name, flags)
        else:
            _exported(walk, name, "x" in flags)
    return EMPTY if call.declared or not _only_options(call) else None


def _refer(walk: Walk, name: str, target: Value) -> None:
    run_index(walk, Arg(target.text))
    walk.variables.references[name] = target.text if name != target.text else ""


def _note_attributes(walk: Walk, name: str, flags: str) -> None:
    """They hold for everything that is assigned later."""
    if letters := "".join(letter for letter in flags if letter in "ilur"):
        walk.variables.attributes[name] = walk.variables.attributes.get(name, "") + letters.replace("r", "")


def _attributes(walk: Walk, name: str, flags: str) -> None:
    """The value given together with the attributes is changed by them for certain."""
    value = walk.state.variables.get(name)
    if isinstance(value, Either) and (first := value.options[0]) is not None:
        value = first
    if isinstance(value, Value) and not isinstance(value, Either):
        if "i" in flags:
            number = walk.expander.number(value)
            walk.state.assign(name, unknown() if number is None else Value(str(number)))
        elif "l" in flags:
            walk.state.assign(name, Value(value.text.lower(), value.taints))
        elif "u" in flags:
            walk.state.assign(name, Value(value.text.upper(), value.taints))
    if "r" in flags:
        _lock(walk, "readonly", name)
    _exported(walk, name, "x" in flags)


def _unset(walk: Walk, call: Call) -> Value | None:
    for arg in call.args:
        run_index(walk, arg)
        if UNKNOWN in arg:
            walk.variables.forget()
            continue
        if "-v" not in call.args:
            walk.state.define(str(arg), None)
        if "-n" in call.args:
            walk.variables.references.pop(str(arg), None)
        elif "-f" not in call.args:
            walk.variables.unset(str(arg))
    return EMPTY


def run_index(walk: Walk, arg: Arg) -> None:
    """A name such as `a[$(command)]`: the index is expanded once more, by the builtin itself."""
    if "[" not in arg:
        return
    if "$" in arg or "`" in arg:
        walk.prompt(arg.value())
    elif match := re.match(r"[A-Za-z_]\w*\[([^\]]+)\]", arg):
        walk.expander.number(Value(match[1]))
