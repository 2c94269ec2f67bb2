"""Read a makefile: which lines `make target` would run, with their variables filled in.

Every branch of a condition counts. A variable that several branches set, and everything that only make can work out, is unknown.
"""

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

from ..values.data_files import Patterns, Words
from ..values.word_values import UNKNOWN

_WORDS = Words(__file__)
_RE = Patterns(__file__)
_MAX_DEPTH = 12
_MAX_TEXT = 20_000
_MAX_LINES = 400
_MAX_ITEMS = 20
_MAX_EVALUATED = 60
_HOME_LIKE = {"HOME": "~", "CURDIR": ".", "MAKE": "make", "SHELL": "/bin/sh", "RM": "rm -f", "CC": "cc", "CXX": "c++"}
_VALUES = {"CMAKE_COMMAND": "cmake", "ENV{HOME}": "~", "CMAKE_SOURCE_DIR": ".", "PROJECT_SOURCE_DIR": "."}
_HERE = tuple(
    "CMAKE_CURRENT_SOURCE_DIR CMAKE_CURRENT_BINARY_DIR CMAKE_BINARY_DIR PROJECT_BINARY_DIR CMAKE_CURRENT_LIST_DIR".split()
)

_Look = Callable[[str], str | None]


class Makefile:
    """`include(name)`: another makefile's text; `given`: variables of the command line; `inherited(name)`: of the environment."""

    def __init__(self, text: str, include: _Look, given: Mapping[str, str], inherited: _Look) -> None:
        self._include = include
        self._given = given
        self._inherited = inherited
        self._of_targets: list[tuple[str, str, str, str]] = []
        """Variables that only some targets see, and what these need: the target or a pattern, name, operator, value."""
        self._evaluated = 0
        self._variables: dict[str, str | None] = {}
        self._rules: dict[str, tuple[list[str], list[str]]] = {}
        self._patterns: list[tuple[str, list[str], list[str]]] = []
        self._default = ""
        self._remade: list[str] = []
        """Files to include that are not there: make makes them first, if there is a rule for them."""
        self._is_whole = True
        """Whether every included file was there: else a variable that is not set may be set in one of them."""
        self.shells: list[str] = []
        """Commands that run while the file is read."""
        self.uses_one_shell = False
        self._read(text, 0)

    def setting(self, name: str) -> str:
        """What the file itself sets a variable to; empty when it does not."""
        value = self._variables.get(name)
        return "" if value is None else self._expand(value, {})

    def lines(self, targets: Sequence[str]) -> list[str]:
        """The command lines that these targets run, what they need first."""
        for name, value in list(self._variables.items()):
            if value is not None and "$(shell" in value and name not in self._given:
                self._expand(value, {})
        found: list[str] = []
        done: set[str] = set()
        goal = (self._variables.get(".DEFAULT_GOAL") or self._default).strip()
        for target in (*self._remade, *(targets or [goal])):
            self._run(target, {}, found, done)
        return found[:_MAX_LINES]

    def _run(self, target: str, seen: Mapping[str, str], found: list[str], done: set[str]) -> None:
        if target in done or len(found) > _MAX_LINES or len(done) > 500:
            return
        done.add(target)
        needs, recipe, stem = self._rule_of(target)
        for pattern, name, operator, value in self._of_targets:
            if fnmatchcase(target, pattern.replace("%", "*")):
                before = f"{self._value(name, seen, 0)} " if operator == "+=" else ""
                seen = {**seen, name: before + self._expand(value, seen)}
        for need in needs:
            self._run(need, seen, found, done)
        automatic = {**seen, "@": target, "<": (*needs, UNKNOWN)[0], "*": stem or UNKNOWN}
        automatic |= dict.fromkeys("^+?", " ".join(needs) or UNKNOWN)
        lines = [self._expand(line, automatic) for line in recipe]
        if self.uses_one_shell and lines:
            lines = ["\n".join(line.lstrip("@-+ \t") for line in lines)]
        found += [line.lstrip("@-+ \t") for line in lines if line.strip()]

    def _rule_of(self, target: str) -> tuple[list[str], list[str], str]:
        needs, recipe = self._rules.get(target, ([], []))
        if target in self._rules and (recipe or not self._patterns):
            return needs, recipe, ""
        for pattern, others, recipe in self._patterns:
            before, _, after = pattern.partition("%")
            if len(target) > len(before) + len(after) and target.startswith(before) and target.endswith(after):
                stem = target[len(before) : len(target) - len(after) or None]
                return [*needs, *(need.replace("%", stem) for need in others)], recipe, stem
        return needs, [] if target in self._rules else self._rules.get(".DEFAULT", ([], []))[1], ""

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
                body = itertools.takewhile(lambda inner: not inner.strip().startswith("endef"), lines)
                self._variables[bare.split()[1].rstrip(":?+=")] = "\n".join(body)
            elif _RE.condition.match(bare):
                conditions += bare.startswith("if")
                conditions -= bare.startswith("endif")
                self._expand(bare, {})
            elif match := _RE.include.fullmatch(bare):
                self._included(match[1], depth)
            elif (match := _RE.variable.fullmatch(bare)) and not bare.startswith("\t"):
                self._assign(match[1], match[2], match[3], is_certain=not conditions)
            elif match := _RE.rule.fullmatch(bare):
                recipes = self._rule(match[1], match[3])
            elif "$(" in bare:  # $(shell ..), $(eval ..), $(info ..)
                self._expand(bare, {})

    def _included(self, names: str, depth: int) -> None:
        for name in self._expand(names, {}).split():
            text = self._include(name) if UNKNOWN not in name and depth < _MAX_DEPTH else None
            if text is None:
                self._is_whole = False
                self._remade.append(name)
            else:
                self._read(text, depth + 1)

    def _assign(self, name: str, operator: str, value: str, *, is_certain: bool) -> None:
        self.uses_one_shell |= name == ".ONESHELL"
        if operator == "!=":
            self.shells.append(self._expand(value, {}))
            self._variables[name] = UNKNOWN
            return
        old = self._variables.get(name)
        if operator == "+=" and old is not None:
            value = f"{old} {value}"
        elif operator == "?=" and (old is not None or self._inherited(name) is not None):
            return
        elif operator.startswith(":") and operator != "=":
            value = self._expand(value, {}).replace("$", "$$")
        if not is_certain and old is not None and old != value:
            value = UNKNOWN
        self._variables[name] = value[:_MAX_TEXT]

    def _rule(self, targets: str, rest: str) -> list[list[str]]:
        needs_text, semicolon, first = rest.partition(";")
        if "=" in needs_text and (match := _RE.variable.fullmatch(needs_text.strip())):  # target: NAME = value
            self._of_targets += [(target, match[1], match[2], match[3]) for target in self._expand(targets, {}).split()]
            return []
        if ":" in needs_text:  # a static pattern: targets: pattern: needs
            needs_text = needs_text.partition(":")[2]
        needs = [need for need in self._expand(needs_text.replace("|", " "), {}).split() if UNKNOWN not in need]
        recipes = []
        for target in self._expand(targets, {}).split():
            self.uses_one_shell |= target == ".ONESHELL"
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
        for recipe in recipes if semicolon else ():
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
        while (match := _RE.reference.search(text, place)) is not None:
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
            read = self._expand(rest, automatic, depth + 1)
            self._evaluated += name == "eval"
            if name == "eval" and self._evaluated < _MAX_EVALUATED:
                self._read(read, depth + 1)
            return ""
        if blank and name == "call":
            called, *given = self._expand(rest, automatic, depth + 1).split(",")
            numbered = {str(number): text for number, text in enumerate(given, 1)}
            return self._value(called.strip(), {**automatic, **numbered}, depth + 1)
        if blank and name == "foreach":
            return self._foreach(rest, automatic, depth)
        if blank and name == "file":
            operation = self._expand(rest, automatic, depth + 1).strip().partition(",")[0]
            path = operation.lstrip("<> ")
            self.shells.append(f"{'cat' if operation[:1] == '<' else 'tee'} {path}")
            return (self._include(path) if operation[:1] == "<" else "") or UNKNOWN
        if blank and name in _WORDS.same:
            return self._expand(rest, automatic, depth + 1).strip()
        if blank and name in ("addprefix", "addsuffix", "patsubst"):
            return _changed(name, self._expand(rest, automatic, depth + 1))
        if blank and name in _WORDS.unknown_functions:
            self._expand(rest, automatic, depth + 1)  # what it runs is found on the way
            return UNKNOWN
        if match := re.fullmatch(r"([\w.-]+):([^=]*)=(.*)", inner):  # $(SRC:.c=.o)
            old, new = (part if "%" in part else f"%{part}" for part in match.groups()[1:])
            return _changed("patsubst", f"{old},{new},{self._value(match[1], automatic, depth)}")
        return self._value(self._expand(inner, automatic, depth + 1), automatic, depth)

    def _foreach(self, text: str, automatic: Mapping[str, str], depth: int) -> str:
        name, names, body = (*text.split(",", 2), "", "")[:3]
        items = self._expand(names, automatic, depth + 1).split()[:_MAX_ITEMS] or [UNKNOWN]
        return " ".join(self._expand(body, {**automatic, name.strip(): item}, depth + 1) for item in items)

    def _value(self, name: str, automatic: Mapping[str, str], depth: int) -> str:
        if name in self._given:
            return self._given[name]
        if name in automatic:
            return automatic[name]
        value = self._variables.get(name)
        if value is not None:
            return self._expand(value, automatic, depth + 1)
        if name != "SHELL" and (value := self._inherited(name)) is not None:
            return value
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
    close, depth = ")" if opening == "(" else "}", 1
    while place < len(text) and (depth := depth + (text[place] == opening) - (text[place] == close)):
        place += 1
    return place


def cmake_commands(text: str) -> Iterator[list[str]]:
    """Command lines that run when it is configured or built; `file(REMOVE ..)` and the like as what they do."""
    text = _RE.comment.sub(" ", text)
    values = {name: value.strip('"') for name, value in _RE.set.findall(text)} | _VALUES | dict.fromkeys(_HERE, ".")
    for match in _RE.call.finditer(text):
        words = [_filled(word, values) for word in _words(text, match.end())]
        name = match[1].lower()
        if name == "file":
            yield from _file(words)
        elif name == "exec_program":
            yield words[:1]
        else:
            yield from _runs(words)


def _words(text: str, place: int) -> list[str]:
    found: list[str] = []
    depth = 1
    while depth and place < len(text):
        if text[place] == "(":
            depth += 1
        elif text[place] == ")":
            depth -= 1
        elif match := _RE.word.match(text, place):
            found.append(next(group for group in match.groups() if group is not None))
            place = match.end()
            continue
        place += 1
    return found


def _runs(words: list[str]) -> Iterator[list[str]]:
    lines: list[list[str]] = []
    is_command = False
    for word in words:
        if word == "COMMAND" or word in _WORDS.keywords:
            is_command = word == "COMMAND"
            lines += [[]] if is_command else []
        elif is_command:
            lines[-1].append(word)
    yield from filter(None, lines)


def _file(words: list[str]) -> Iterator[list[str]]:
    action, rest = (words[0].upper(), words[1:]) if words else ("", [])
    if action in ("REMOVE", "REMOVE_RECURSE"):
        yield ["rm", "-rf", *rest] if action == "REMOVE_RECURSE" else ["rm", "-f", *rest]
    elif action in ("WRITE", "APPEND", "TOUCH", "GENERATE") and rest:
        yield ["tee", rest[1] if action == "GENERATE" and len(rest) > 1 else rest[0]]
    elif action in ("COPY", "INSTALL") and "DESTINATION" in rest:
        place = rest.index("DESTINATION")
        yield ["cp", *rest[:place], *rest[place + 1 : place + 2]]
    elif action == "RENAME" and len(rest) > 1:
        yield ["mv", *rest[:2]]
    elif action == "READ" and rest:
        yield ["cat", rest[0]]
    elif action == "UPLOAD" and len(rest) > 1:
        yield ["curl", "-T", *rest[:2]]
    elif action == "CHMOD" and rest:
        yield ["chmod", *rest[:1]]


def _filled(word: str, values: dict[str, str], depth: int = 0) -> str:
    if "$" not in word or depth > 5:
        return word.replace("$", UNKNOWN) if "$" in word else word

    def value(match: re.Match[str]) -> str:
        found = values.get(match[1])
        return UNKNOWN if found is None else _filled(found, values, depth + 1)

    word = re.sub(r"\$\{(\w+)\}|\$(?=ENV\{)", lambda match: value(match) if match[1] else "\0", word)
    word = re.sub(r"\0(ENV\{\w+\})", value, word)
    return re.sub(r"\$<.*", UNKNOWN, word)
