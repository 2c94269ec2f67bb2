"""Write the home directory out where a program of a scripting language has it in a variable or builds a path from it."""

from __future__ import annotations

import itertools
import re

from ..values.data_files import Patterns

_RE = Patterns(__file__)
_IN_TEXT = re.compile(rf"[$#]\{{\s*(?:{_RE.home.pattern})\s*\}}|\$ENV\{{['\"]?HOME['\"]?\}}(?=[^\n;,)]*['\"])")
_ROUNDS = 3
_MAX_NAMES = 8
_MAX_TEXT = 30_000


def with_homes(text: str) -> str:
    """The same program with `~` for what stands for the home directory."""
    if len(text) > _MAX_TEXT or not _RE.mentions.search(text):
        return text
    names: dict[str, str] = {}
    for match in _RE.picked.finditer(text):
        if picked := re.search(r"\bHOME\b(?:\s*:\s*(\w+))?", match[1]):
            names[picked[1] or "HOME"] = "~"
    text = _RE.home.sub("'~'", _IN_TEXT.sub("~", text))
    for _ in range(_ROUNDS):
        before = text
        for name, path in names.items():
            text = _replaced(text, name, path)
        text = _RE.added.sub(r"'\1\3'", _RE.joined.sub(r"'\1/\3'", _RE.template.sub(r"'\1'", text)))
        names = {match[1]: match[2] for match in itertools.islice(_RE.assigned.finditer(text), _MAX_NAMES)}
        if text == before and not names:
            break
    return text


def _replaced(text: str, name: str, path: str) -> str:
    bare = re.escape(name.lstrip("$"))
    text = re.sub(rf"[$#]\{{\s*\$?{bare}\s*\}}", lambda _: path, text)
    if name.startswith("$"):  # perl and php put it into strings by its name
        text = re.sub(
            rf"(\"[^\"\n]{{0,200}}?)\${bare}\b([^\"\n]{{0,200}}\")", lambda match: match[1] + path + match[2], text
        )
    return re.sub(rf"(?<![\w.$'\"/~]){re.escape(name)}\b(?!\s*(?::?=[^=]|\())", lambda _: f"'{path}'", text)
