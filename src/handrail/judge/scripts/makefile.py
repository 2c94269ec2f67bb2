"""Read a makefile: which lines `make target` would run, with their variables filled in.

Every branch of a condition counts. A variable that several branches set, and everything that only make can work out, is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from ..values.word_values import UNKNOWN

_MAX_DEPTH = 12
_MAX_TEXT = 20_000
_MAX_LINES = 400
_VARIABLE = re.compile(r"(?:(?:export|override|private)\s+)*([\w.@%-]+)\s*(:::?=|::?=|\?=|\+=|!=|=)\s*(.*)", re.S)
_CONDITION = re.compile(r"(?:else\s+)?(?:ifeq|ifneq|ifdef|ifndef)\b|else\b|endif\b")
_INCLUDE = re.compile(r"[-s]?include\s+(.+)")
_RULE = re.compile(r"([^:=#\t][^:=#]*?)\s*(::?)(?!=)\s*(.*)", re.S)
_REFERENCE = re.compile(r"\$(?:\$|([@<^?*+|%])|\(([@<^?*+])[DF]\)|([({])|(\w))")
_HOME_LIKE = {"HOME": "~", "CURDIR": ".", "MAKE": "make", "SHELL": "/bin/sh", "RM": "rm -f", "CC": "cc", "CXX": "c++"}
_UNKNOWN_FUNCTIONS = frozenset(
    "filter filter-out word wordlist words firstword lastword dir notdir suffix basename join realpath foreach origin "
    "flavor value guile findstring file let intcmp if or and subst".split()
)
_SAME = frozenset(("wildcard", "sort", "strip", "abspath"))


class Makefile:
    """`include(name)` gives the text of another makefile, None when there is none; `given` are those of the command line."""

    def __init__(self, text: str, include: Callable[[str], str | None], given: Mapping[str, str]) -> None:
        self._include = include
        self._given = given
        self._variables: dict[str, str | None] = {}
        self._rules: dict[str, tuple[list[str], list[str]]] = {}
        self._patterns: list[tuple[str, list[str], list[str]]] = []
        self._default = ""
        self._is_whole = True
        """Whether every included file was there: else a variable that is not set may be set in one of them."""
        self.shells: list[str] = []
        """Commands that run while the file is read."""
        self.uses_one_shell = False
        self._read(text, 0)

    def lines(self, targets: Sequence[str]) -> list[str]:
        """The command lines that these targets run, what they need first."""
        for name, value in list(self._variables.items()):
            if value is not None and "$(shell" in value and name not in self._given:
                self._expand(value, {})
        found: list[str] = []
        done: set[str] = set()
        goal = (self._variables.get(".DEFAULT_GOAL") or self._default).strip()
        for target in targets or [goal]:
            self._run(target, found, done)
        return found[:_MAX_LINES]

    def _run(self, target: str, found: list[str], done: set[str]) -> None:
        if target in done or len(found) > _MAX_LINES or len(done) > 500:
            return
        done.add(target)
        needs, recipe, stem = self._rule_of(target)
        for need in needs:
            self._run(need, found, done)
        automatic = {
            "@": target,
            "<": needs[0] if needs else UNKNOWN,
            "^": " ".join(needs) or UNKNOWN,
            "+": " ".join(needs) or UNKNOWN,
            "?": " ".join(needs) or UNKNOWN,
            "*": stem or UNKNOWN,
            "|": UNKNOWN,
            "%": UNKNOWN,
        }
        lines = [self._expand(line, automatic) for line in recipe]
        if self.uses_one_shell and lines:
            lines = ["\n".join(line.lstrip("@-+ \t") for line in lines)]
        found += [line.lstrip("@-+ \t") for line in lines if line.strip()]

    def _rule_of(self, target: str) -> tuple[list[str], list[str], str]:
        if target in self._rules:
            needs, recipe = self._rules[target]
            if recipe or not self._patterns:
                return needs, recipe, ""
        else:
            needs = []
        for pattern, others, recipe in self._patterns:
            before, _, after = pattern.partition("%")
            if len(target) > len(before) + len(after) and target.startswith(before) and target.endswith(after):
                stem = target[len(before) : len(target) - len(after) or None]
                return [*needs, *(need.replace("%", stem) for need in others)], recipe, stem
        return needs, [], ""

    def _read(self, text: str, depth: int) -> None:
        recipes: list[list[str]] = []
        conditions = 0
        lines = iter(_logical_lines(text))
        for line in lines:
            if line.startswith("\t") and recipes:
                if line.strip() and not line.lstrip().startswith("#"):
                    for recipe in recipes:
                        recipe.append(line[1:])
                continue
            bare = re.sub(r"(?s)(?<!\\)#.*", "", line).strip()
            if not bare:
                continue
            if bare.startswith("define "):
                self._define(bare, lines)
            elif _CONDITION.match(bare):
                conditions += bare.startswith("if")
                conditions -= bare.startswith("endif")
                self._expand(bare, {})
            elif match := _INCLUDE.fullmatch(bare):
                self._included(match[1], depth)
            elif (match := _VARIABLE.fullmatch(bare)) and not bare.startswith("\t"):
                self._assign(match[1], match[2], match[3], is_certain=not conditions)
            elif match := _RULE.fullmatch(bare):
                recipes = self._rule(match[1], match[3])
            elif "$(" in bare:  # $(shell ..), $(eval ..), $(info ..)
                self._expand(bare, {})

    def _define(self, line: str, lines: object) -> None:
        name = line.split()[1].rstrip(":?+=")
        body: list[str] = []
        for inner in lines:  # type: ignore[attr-defined]
            if inner.strip().startswith("endef"):
                break
            body.append(inner)
        self._variables[name] = "\n".join(body)

    def _included(self, names: str, depth: int) -> None:
        for name in self._expand(names, {}).split():
            text = self._include(name) if UNKNOWN not in name and depth < _MAX_DEPTH else None
            if text is None:
                self._is_whole = False
            else:
                self._read(text, depth + 1)

    def _assign(self, name: str, operator: str, value: str, *, is_certain: bool) -> None:
        if name == ".ONESHELL":
            self.uses_one_shell = True
        if operator == "!=":
            self.shells.append(self._expand(value, {}))
            self._variables[name] = UNKNOWN
            return
        old = self._variables.get(name)
        if operator == "+=" and old is not None:
            value = f"{old} {value}"
        elif operator == "?=" and old is not None:
            return
        elif operator.startswith(":") and operator != "=":
            value = self._expand(value, {}).replace("$", "$$")
        if not is_certain and old is not None and old != value:
            value = UNKNOWN
        self._variables[name] = value[:_MAX_TEXT]

    def _rule(self, targets: str, rest: str) -> list[list[str]]:
        needs_text, semicolon, first = rest.partition(";")
        if "=" in needs_text and (match := _VARIABLE.fullmatch(needs_text.strip())):  # target: NAME = value
            self._assign(match[1], "?=", match[3], is_certain=False)
            return []
        if ":" in needs_text:  # a static pattern: targets: pattern: needs
            needs_text = needs_text.partition(":")[2]
        needs = [need for need in self._expand(needs_text.replace("|", " "), {}).split() if UNKNOWN not in need]
        recipes = []
        for target in self._expand(targets, {}).split():
            if target == ".ONESHELL":
                self.uses_one_shell = True
            if "%" in target:
                recipe: list[str] = []
                self._patterns.append((target, needs, recipe))
            else:
                known = self._rules.setdefault(target, ([], []))
                known[0].extend(needs)
                recipe = known[1]
                if not self._default and target[:1] != "." and UNKNOWN not in target:
                    self._default = target
            recipes.append(recipe)
        if semicolon:
            for recipe in recipes:
                recipe.append(first)
        return recipes

    def _expand(self, text: str, automatic: Mapping[str, str], depth: int = 0) -> str:
        """The text with variables filled in; `$$` becomes `$`."""
        if "$" not in text:
            return text
        if depth > _MAX_DEPTH or len(text) > _MAX_TEXT:
            return UNKNOWN
        out: list[str] = []
        place = 0
        while (match := _REFERENCE.search(text, place)) is not None:
            out.append(text[place : match.start()])
            place = match.end()
            if match.group() == "$$":
                out.append("$")
            elif match[1]:
                out.append(automatic.get(match[1], UNKNOWN))
            elif match[2]:
                out.append(UNKNOWN)
            elif match[4]:
                out.append(self._value(match[4], automatic, depth))
            else:
                end = _closing(text, match.end(), match[3])
                out.append(self._reference(text[match.end() : end], automatic, depth))
                place = end + 1
            if sum(map(len, out)) > _MAX_TEXT:
                return UNKNOWN
        return "".join([*out, text[place:]])

    def _reference(self, inner: str, automatic: Mapping[str, str], depth: int) -> str:
        name, blank, rest = inner.partition(" ")
        if blank and name == "shell":
            self.shells.append(self._expand(rest, automatic, depth + 1))
            return UNKNOWN
        if blank and name in ("info", "warning", "error", "eval"):
            self._expand(rest, automatic, depth + 1)
            return ""
        if blank and name == "call":
            called, *given = self._expand(rest, automatic, depth + 1).split(",")
            numbered = {str(number): text for number, text in enumerate(given, 1)}
            return self._value(called.strip(), {**automatic, **numbered}, depth + 1)
        if blank and name in _SAME:
            return self._expand(rest, automatic, depth + 1).strip()
        if blank and name in ("addprefix", "addsuffix", "patsubst"):
            return _changed(name, self._expand(rest, automatic, depth + 1))
        if blank and name in _UNKNOWN_FUNCTIONS:
            self._expand(rest, automatic, depth + 1)  # what it runs is found on the way
            return UNKNOWN
        if match := re.fullmatch(r"([\w.-]+):([^=]*)=(.*)", inner):  # $(SRC:.c=.o)
            old, new = (part if "%" in part else f"%{part}" for part in match.groups()[1:])
            return _changed("patsubst", f"{old},{new},{self._value(match[1], automatic, depth)}")
        return self._value(self._expand(inner, automatic, depth + 1), automatic, depth)

    def _value(self, name: str, automatic: Mapping[str, str], depth: int) -> str:
        if name in self._given:
            return self._given[name]
        if name in automatic:
            return automatic[name]
        value = self._variables.get(name)
        if value is not None:
            return self._expand(value, automatic, depth + 1)
        if name in _HOME_LIKE:
            return _HOME_LIKE[name]
        return "" if self._is_whole and name not in ("PATH", "USER", "PWD", "TMPDIR") else UNKNOWN


def _changed(function: str, text: str) -> str:
    """What make's functions on lists of names give."""
    if function == "patsubst":
        old, new, names = (*text.split(",", 2), "", "")[:3]
        before, _, after = old.strip().partition("%")
        changed = []
        for name in names.split():
            if len(name) >= len(before) + len(after) and name.startswith(before) and name.endswith(after):
                name = new.strip().replace("%", name[len(before) : len(name) - len(after) or None], 1)
            changed.append(name)
        return " ".join(changed)
    part, _, names = text.partition(",")
    return " ".join(part.strip() + name if function == "addprefix" else name + part.strip() for name in names.split())


def _logical_lines(text: str) -> list[str]:
    """Lines with their continuations. In a recipe the backslash stays: the shell joins them itself."""
    found: list[str] = []
    held = ""
    for line in text.replace("\r\n", "\n").split("\n"):
        if line.endswith("\\") and not line.endswith("\\\\"):
            held += f"{line}\n" if (held or line).startswith("\t") else f"{line[:-1]} "
            continue
        found.append(held + line)
        held = ""
    return [*found, held] if held else found


def _closing(text: str, place: int, opening: str) -> int:
    close = ")" if opening == "(" else "}"
    depth = 1
    for number in range(place, len(text)):
        if text[number] == opening:
            depth += 1
        elif text[number] == close:
            depth -= 1
            if not depth:
                return number
    return len(text)
