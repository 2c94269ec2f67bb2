"""What a program in another language does to the machine, passed to the rules in the shell's terms."""

import base64
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote

from ..grammar.sql import is_dangerous
from ..rules import Match, builtin, on_read, on_write, rule
from ..values.assessment import Reach
from ..values.data_files import Patterns
from ..values.word_values import UNKNOWN, Value, make_arg

MAX_DEPTH = 6
_RE = Patterns(__file__)
_FIRST_ARGUMENT = {"javascript": 2, "perl": 0, "ruby": 0}


@dataclass(eq=False)
class Host:
    """Takes what a reader of some language finds."""

    language: str
    _shell: Callable[[Value, Value | None], object]
    _argv: Callable[..., object]
    _is_followed: Callable[[str], bool]
    _changed: Callable[[str, bool], object]
    export: Callable[[str, str], object]
    """Takes a variable that the program gives to those that it starts, and its value."""
    _cwd: str
    _project: str
    arguments: Sequence[str] | None = None
    """What the program is started with, its own name first; None when that is not known."""
    environment: Callable[[str], str | None] = lambda _: None
    """A variable of the environment that it is started in; None when that is not known."""
    options: Sequence[str] = ()
    """The program's strings that are options: a word of which nothing is known may be one of them."""
    matches: list[Match] = field(default_factory=list)
    downloads: bool = False
    """Whether the program gets something from the network: what it writes may be that."""
    depth: int = 0
    shown: list[str] = field(default_factory=list)
    """The texts and words that were shown to the rules as commands."""
    calls: int = 0
    """How many calls of interest were looked at; programs that make very many are not read to the end."""
    _judged: set[tuple[object, ...]] = field(default_factory=set)

    def with_inputs(self, text: str) -> str:
        """The program with the paths that it is started with, where they are known, for the expressions that read them."""

        def value(match: re.Match[str]) -> str:
            if match["place"] is None:
                found = self.environment(match["name"] or match["member"])
            else:
                given = (self.arguments or ())[1:]
                place = int(match["place"]) - _FIRST_ARGUMENT.get(self.language, 1)
                found = given[place] if 0 <= place < len(given) and self.language != "python" else None
            quote = '"' if '"' in match[0] else "'"  # the same in a string that it is inside of
            is_path = found and re.fullmatch(r"[^'\"\\\n]*[/~][^'\"\\\n]*", found)
            return f"{quote}{found}{quote}" if is_path else match[0]

        return _RE.inputs.sub(value, text)

    def find(self, rule_id: str, reach: Reach = Reach.NOWHERE) -> None:
        if not any(match.rule.id == rule_id for match in self.matches):
            self.matches.append(Match(rule(rule_id), reach))

    def is_program(self, word: str) -> bool:
        """Whether a word names a program that the rules or the walk know."""
        name = word.rsplit("/", 1)[-1]
        return builtin().knows(name) or self._is_followed(name)

    def shell(self, text: str, *, stdin: str | None = None) -> None:
        """It runs a text through a shell; `stdin` is what that reads."""
        if self._is_new(text, stdin):
            self.shown.append(text)
            self._shell(Value(text), None if stdin is None else Value(stdin))

    def run(self, *words: str, stdin: str | None = None, starts: bool = False) -> None:
        """It runs a program with these arguments and this input, or does what that program would do."""
        if self._is_new(words, stdin):
            self.shown += words
            args = [make_arg(word, glob="*" in word) for word in words]
            self._argv(args, None if stdin is None else Value(stdin), starts=starts)
            for option in self.options if UNKNOWN in words else ():
                self.run(*(option if word == UNKNOWN else word for word in words), stdin=stdin, starts=starts)

    def start(self, *words: str, stdin: str | None = None) -> None:
        """It starts a program by its name; `run` is also for what it does itself."""
        self.run(*words, stdin=stdin, starts=True)

    def start_arguments(self) -> None:
        """It may start what it was given as arguments: `run.py rm -rf x`."""
        words = list(self.arguments or ())[1:]
        words = words[words.index("--") + 1 :] if "--" in words else words
        if len(words) == 1 and " " in words[0]:
            self.shell(words[0])
        elif words and self.is_program(words[0]):
            self.start(*words)

    def _is_new(self, *command: object) -> bool:
        """Whether this has not been judged yet."""
        before = len(self._judged)
        self._judged.add(command)
        return len(self._judged) > before

    def write(self, path: str, *, empties: bool = False) -> None:
        self.matches.extend(on_write(path, self._cwd, self._project, empties=empties))
        self._changed(path, self.downloads)

    def read(self, path: str) -> None:
        self.matches.extend(on_read(path, self._cwd, self._project))
        if path[:1] == "|" and self.language == "ruby":
            self.shell(path[1:])

    def delete(self, path: str | None, *, tree: bool) -> None:
        if tree:
            self.run("rm", "-r", UNKNOWN if path is None else path)
            for given in (self.arguments or ())[1:] if path is None else ():  # it may be one of these
                self.run("rm", "-r", given)
        elif path is not None:
            self.run("rm", path)

    def delete_tree(self, path: str) -> None:
        self.delete(path, tree=True)

    def sql(self, text: str) -> None:
        if is_dangerous(text):
            self.find("sql.destructive")


def from_data_url(text: str) -> str:
    """The program that `data:text/javascript,..` holds; nothing if it is no such address."""
    kind, comma, data = text.partition(",")
    if not kind.startswith("data:") or not comma:
        return ""
    if not kind.endswith(";base64"):
        return unquote(data)
    try:
        return base64.b64decode(data + "==").decode("utf-8", "replace")
    except ValueError:
        return UNKNOWN
