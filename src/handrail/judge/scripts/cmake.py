"""Read a CMakeLists.txt: the commands that it runs, and the files that it writes or removes outside of its build folder."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..values.data_files import Patterns, Words
from ..values.word_values import UNKNOWN

_WORDS = Words(__file__)
_RE = Patterns(__file__)
_VALUES = {"CMAKE_COMMAND": "cmake", "ENV{HOME}": "~", "CMAKE_SOURCE_DIR": ".", "PROJECT_SOURCE_DIR": "."}
_HERE = tuple(
    "CMAKE_CURRENT_SOURCE_DIR CMAKE_CURRENT_BINARY_DIR CMAKE_BINARY_DIR PROJECT_BINARY_DIR CMAKE_CURRENT_LIST_DIR".split()
)


def commands(text: str) -> Iterator[list[str]]:
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
    line: list[str] | None = None
    for word in words:
        if word == "COMMAND":
            if line:
                yield line
            line = []
        elif word in _WORDS.keywords:
            if line:
                yield line
            line = None
        elif line is not None:
            line.append(word)
    if line:
        yield line


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
