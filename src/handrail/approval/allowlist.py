"""The commands that a user allows or denies in config.yaml: `git push origin`, `docker compose *`, `tool:mcp__mail__*`.

An entry is the first words of a command line; a command with more words matches too, and so does one with options in between
(`git -C . push origin`). `*`, `?` and `[..]` stand for a part of a word, and for any part of the whole line: `*--force*`.
"""

from __future__ import annotations

import json
import posixpath
import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase, translate
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..judge.values.assessment import Reach
from ..judge.values.data_files import Words

if TYPE_CHECKING:
    from ..judge.rules import Command

_TOOL = "tool:"
_WORDS = Words(__file__)
_OPERATOR = re.compile(r"(?:\d*(?:[<>]{1,3}&?|>\|)|&>>?|\|&?|\|\||&&?|;;?)\S*")
_JOINED_BY = re.compile(r"\|\||\|&|\||&&|;")
_JOINS = frozenset(("|", "||", "&&", ">", ">>", "<"))
_WILD = re.compile(r"[*?\[]")
_UNKNOWN = "?"
_NOTHING = "(?!)"  # what `translate` makes of a set that no character is in


class Entry(NamedTuple):
    text: str
    words: tuple[str, ...] = ()
    tool: str = ""

    def matches(self, argv: Sequence[str], *, allows: bool = False) -> bool:
        """Whether a command line is meant. An entry that `allows` does not cover one that goes elsewhere."""
        if not self.words or not argv:
            return False
        if not allows and _command(argv[:1]).name == self.words[0]:
            argv = [self.words[0], *argv[1:]]  # pip3 is pip
        is_named = len(argv) >= len(self.words) and self._names(argv[0])
        if is_named and all(map(fnmatchcase, argv[1:], self.words[1:])):
            more = argv[len(self.words) :] if allows else ()  # these can make it run another program
            if not any(arg.partition("=")[0] in _WORDS.run_more for arg in more):
                return True
        if not allows and self._is_wild and _is_like(" ".join(argv), self.text):
            return True
        return self._parsed(argv, fnmatchcase, allows=allows)

    def may_match(self, argv: Sequence[str]) -> bool:
        """Whether a command line could be meant, were its unknown parts known."""
        return bool(self.words) and any(_UNKNOWN in word for word in argv[1:]) and self._parsed(argv, _could_be)

    def matches_text(self, command: str) -> bool:
        """Whether a whole command is meant, with its pipes and lists."""
        if not self.words or not (self._is_wild or any(map(_OPERATOR.fullmatch, self.words))):
            return False
        return _is_like(_JOINED_BY.sub(r" \g<0> ", command), _JOINED_BY.sub(r" \g<0> ", self.text))

    def matches_tool(self, name: str) -> bool:
        return bool(self.tool) and fnmatchcase(name, self.tool)

    @property
    def _is_wild(self) -> bool:
        return _WILD.search(self.text) is not None

    def _names(self, program: str) -> bool:
        return fnmatchcase(program.rpartition("/")[2] if "/" not in self.words[0] else program, self.words[0])

    def _parsed(self, argv: Sequence[str], same: Callable[[str, str], bool], *, allows: bool = False) -> bool:
        """By sub-commands and operands in their order, and by options in any place."""
        if len(argv) < len(self.words) or not self._names(argv[0]):
            return False
        command = _command(argv)
        if allows and any(command.has((option,)) for option in _WORDS.elsewhere if option not in self.words):
            return False
        wanted = list(self.words[1:])
        if wanted and wanted[-1] == "*":
            wanted.pop()  # any word, an option too
        if not all(_has(command, word, same) for word in wanted if word[:1] == "-"):
            return False
        return _in_order(command, [word for word in wanted if word[:1] != "-"], same, skips=not allows)


def original_entry(text: str) -> tuple[GrantKey, ...] | Entry:
    """What an entry of `command_allowlist` means that Hermes Agent wrote: the name of a pattern there, or a command. A pattern
    becomes our rule, for what stays in a project or in folders for temporary files. Raises BadEntry."""
    known = json.loads(Path(__file__).with_name("original_patterns.json").read_text("utf-8")).get(text)
    if known is not None:
        return tuple(GrantKey(known, reach) for reach in (Reach.NOWHERE, Reach.TEMP, Reach.PROJECT))
    if _WILD.search(text.partition(" ")[0]):
        write = "write rule@reach, such as fs.rm.recursive@project, or a command"
        raise BadEntry(0, f"{text!r} does not name a program; {write}")
    return allow_entries([text])[0]


def deny_entries(texts: Iterable[str]) -> tuple[Entry, ...]:
    """Raises BadEntry for one that can never match."""
    return tuple(_entry(number, text) for number, text in enumerate(texts))


def allow_entries(texts: Iterable[str]) -> tuple[Entry, ...]:
    """Raises BadEntry, also for an entry that would allow everything."""
    entries = deny_entries(texts)
    for number, entry in enumerate(entries):
        first = (entry.tool or entry.words[0]).strip("*?")
        why = "" if first else "would allow everything; name a program"
        if len(entry.words) == 1 and first.rpartition("/")[2] in _WORDS.run_anything:
            why = f"would allow everything that {first} can run; add the words that follow"
        elif operator := next((word for word in entry.words if _OPERATOR.fullmatch(word)), None):
            why = why or f"can never match: what is allowed is one command, and {operator!r} joins several"
        if why:
            raise BadEntry(number, f"{entry.text!r} {why}")
    return entries


class BadEntry(ValueError):
    """An entry that cannot be used; `number` is its place in the list."""

    def __init__(self, number: int, message: str) -> None:
        super().__init__(message)
        self.number = number


def _entry(number: int, text: str) -> Entry:
    if text.startswith(_TOOL):
        tool = text.removeprefix(_TOOL).strip()
        if not tool or " " in tool:
            raise BadEntry(number, f"{text!r} can never match: a tool's name follows `tool:`, and has no spaces")
        return Entry(text, tool=tool)
    text = re.sub(r"\$HOME\b|\$\{HOME\}", "~", text)
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise BadEntry(number, f"{text!r} cannot be read as words: {error}") from None
    if not words:
        raise BadEntry(number, "an entry is empty; name a program")
    if why := _never(text, words):
        raise BadEntry(number, f"{text!r} can never match: {why}")
    return Entry(text, words)


def _never(text: str, words: Sequence[str]) -> str:
    """Why no command line can match; empty when one can."""
    first, wild = words[0], _WILD.search(text) is not None
    if any(_NOTHING in translate(word) for word in words):
        return "no character is in its brackets"
    if re.search(r"\$[\w({]|`", text):
        return "variables and substitutions are replaced before a command is compared; write what they stand for"
    if wild and _WILD.search(first):
        return ""
    if " " in first:
        return "a program's name has no spaces; leave the quotes out"
    if re.match(r"[A-Za-z_]\w*=", first):
        return "an assignment is not part of a command line; name the program after it"
    if first[:1] == "-":
        return f"it does not name a program; write `*{first}*` for any command with {first}"
    if not wild and words[-1] in _JOINS:
        return f"nothing follows {words[-1]!r}"
    if first in _WORDS.keywords or _OPERATOR.fullmatch(first):
        return f"{first!r} is a word of the shell, not a program"
    return ""


def _command(argv: Sequence[str]) -> Command:
    # Loaded with the first command that is compared: many lists are never asked.
    from ..judge.rules import Command
    from ..judge.values.word_values import Arg

    return Command(argv[0].rpartition("/")[2], [Arg(word) for word in argv[1:]])


def _has(command: Command, option: str, same: Callable[[str, str], bool]) -> bool:
    from ..judge.programs.long_options import same_options

    if command.has(same_options(command.name, command.operands, option.rstrip("*"))):
        return True
    if any(same(arg, option) for arg in command.args):
        return True
    letters = option[1:]
    return letters.isalpha() and option[1:2] != "-" and set(letters) <= command.letters


def _in_order(command: Command, wanted: Sequence[str], same: Callable[[str, str], bool], *, skips: bool) -> bool:
    """Whether the first operands are these; if it `skips`, one that may be the value of an option before it does not count.
    Such a value can name another place, so what allows does not skip it: `docker compose -f prod.yml down`."""
    left = list(wanted)
    for place, operand in enumerate(command.operands):
        if left and same(operand, left[0]):
            left.pop(0)
        elif left and not (skips and place in command.maybe):
            return False
    return not left


def _is_like(text: str, glob: str) -> bool:
    """Whether a line fits a glob, whatever its blanks and capitals: `*DROP TABLE*`."""
    return fnmatchcase(" ".join(text.split()).lower(), " ".join(glob.split()).lower())


def _could_be(word: str, pattern: str) -> bool:
    return fnmatchcase(word, pattern) or (_UNKNOWN in word and fnmatchcase(pattern, word.replace(_UNKNOWN, "*")))


HERE = "local"
# The scope of a grant that ends with its process; other scopes have names that a later process can use again.
PROCESS_SCOPE = "process:"
# What these find can be anything the next time, so a yes to one says nothing about another.
_ANYTHING = ("dynamic.", "rce.", "parse.", "limit", "text.", "input.", "code.", "judge.")
_FAR = {
    Reach.NOWHERE: "",
    Reach.TEMP: "in folders for temporary files",
    Reach.PROJECT: "in any working directory",
    Reach.OUTSIDE: "anywhere outside the working directory",
    Reach.HOME: "anywhere in the home",
    Reach.SYSTEM: "anywhere in the system",
    Reach.UNKNOWN: "anywhere",
}


class GrantKey(NamedTuple):
    """What a yes for longer than once covers, and nothing wider: a rule and how far its effect reaches. What stays in a project
    belongs to that project: a yes to deleting below `/srv/app` covers neither another folder nor another machine. `root` is the
    folder that the reach PROJECT means; empty in an entry that was written for every folder."""

    rule: str
    reach: Reach
    root: str = ""
    environment: str = HERE

    def __str__(self) -> str:
        where = "" if self.environment == HERE else f"{self.environment}/"
        root = f":{self.root}" if self.root else ""
        return f"{where}{self.rule}@{self.reach.name.lower()}{root}"

    def covers(self, other: GrantKey) -> bool:
        """Whether a grant of this key allows the other."""
        if (self.reach, self.environment) != (other.reach, other.environment):
            return False
        # A list of hosts covers each of them.
        if self.rule != other.rule and not other.rule.startswith(f"{self.rule}.host."):
            return False
        is_inside = not self.root or other.root == self.root or other.root.startswith(self.root.rstrip("/") + "/")
        return is_inside and self.can_last

    @property
    def can_last(self) -> bool:
        """Whether it can be granted for longer than once."""
        return self.reach is not Reach.UNKNOWN and not can_be_anything(self.rule)

    def described(self, what: str, cwd: str) -> str:
        """What a longer grant covers, in words; `what` is what the rule finds."""
        here = self.root == posixpath.normpath(cwd or ".")
        far = "in this folder" if here else f"below {self.root}" if self.root else _FAR[self.reach]
        where = "" if self.environment == HERE else f"on {self.environment}"
        return " ".join(filter(None, [what, far, where]))


def can_be_anything(rule: str) -> bool:
    """Whether what the rule finds has no known bounds."""
    return rule.startswith(_ANYTHING)


def grant_key(rule: str, reach: Reach, *, root: str, environment: str) -> GrantKey:
    """`root` is the folder in which work is expected."""
    root = posixpath.normpath(root) if reach is Reach.PROJECT and root else ""
    if reach is Reach.PROJECT and not root.strip("/."):
        return GrantKey(rule, Reach.UNKNOWN, "", environment)  # a project that contains everything is not a bound
    return GrantKey(rule, reach, root, environment)


def parse_grant_key(text: str) -> GrantKey:
    """A key as it is written in `command_allowlist`. Raises ValueError that says what is wrong with it."""
    where, slash, rest = text.partition("/") if "/" in text.partition("@")[0] else ("", "", text)
    rule, at, far = rest.partition("@")
    name, _, root = far.partition(":")
    example = "such as fs.rm.recursive@project:/srv/app"
    if not at or not name:
        raise ValueError(f"{text!r} does not say how far it reaches; write rule@reach, {example}")
    if not rule.strip("*.? ") or "*" in rule:
        raise ValueError(f"{text!r} would allow every rule; name one, {example}")
    reaches = {reach.name.lower(): reach for reach in Reach if reach is not Reach.UNKNOWN}
    if name not in reaches:
        raise ValueError(f"{text!r}: {name!r} is not a reach; known: {', '.join(reaches)}")
    if can_be_anything(rule):
        raise ValueError(f"{text!r}: {rule} can be anything, and is asked about each time")
    if root and (reaches[name] is not Reach.PROJECT or not root.startswith("/")):
        raise ValueError(f"{text!r}: only `project` has a folder, and that is an absolute path, {example}")
    if slash and not where:
        raise ValueError(f"{text!r} starts with a slash; an environment's name goes before it")
    return GrantKey(rule, reaches[name], posixpath.normpath(root) if root else "", where or HERE)
