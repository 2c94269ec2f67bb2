"""Write the home directory out where a program of a scripting language has it in a variable or builds a path from it."""

from __future__ import annotations

import itertools
import re

_MENTIONS = re.compile(r"\bHOME\b|homedir|\bDir\.home\b|user\.home|homeDir|USERPROFILE")
_HOME = re.compile(
    r"require\(\s*['\"](?:node:)?os['\"]\s*\)\.homedir\(\)|(?:\b\w+\.)?\bhomedir\(\)|\bDeno\.homeDir\(\)|"
    r"\b(?:process|Bun)\.env\.(?:HOME|USERPROFILE)\b|\bprocess\.env\[\s*['\"]HOME['\"]\s*\]|\bDeno\.env\.get\(\s*['\"]HOME['\"]\s*\)|"
    r"\bDir\.home\b|\bENV\[\s*['\"]HOME['\"]\s*\]|\bENV\.fetch\(\s*['\"]HOME['\"]\s*\)|\$ENV\{['\"]?HOME['\"]?\}|"
    r"(?:\bos\.)?\bgetenv\(\s*['\"]HOME['\"]\s*\)|\$_(?:SERVER|ENV)\[\s*['\"]HOME['\"]\s*\]|"
    r"\bSystem\.getProperty\(\s*['\"]user\.home['\"]\s*\)"
)
_IN_TEXT = re.compile(rf"[$#]\{{\s*(?:{_HOME.pattern})\s*\}}|\$ENV\{{['\"]?HOME['\"]?\}}(?=[^\n;,)]*['\"])")
_JOINED = re.compile(
    r"(?:\b(?:path|Path)\.|\bpath\.posix\.)?\b(?:join|resolve|File\.join)\(\s*'(~[^'\n]*)'\s*,\s*(['\"`])([^'\"`\n$]+)\2\s*\)"
)
_ADDED = re.compile(r"'(~[^'\n]*)'\s*(?:\+|\.\.?|<>)\s*(['\"`])([^'\"`\n$]*)\2")
_TEMPLATE = re.compile(r"[`\"](~[^`\"'\n$#]*)[`\"]")
_ASSIGNED = re.compile(r"([$\w]+)\s*:?=\s*'(~[^'\n]*)'")
_PICKED = re.compile(r"\{([^{}\n]*)\}\s*=\s*process\.env\b")
_ROUNDS = 3
_MAX_NAMES = 8
_MAX_TEXT = 30_000


def with_homes(text: str) -> str:
    """The same program with `~` for what stands for the home directory."""
    if len(text) > _MAX_TEXT or not _MENTIONS.search(text):
        return text
    names: dict[str, str] = {}
    for match in _PICKED.finditer(text):
        if picked := re.search(r"\bHOME\b(?:\s*:\s*(\w+))?", match[1]):
            names[picked[1] or "HOME"] = "~"
    text = _HOME.sub("'~'", _IN_TEXT.sub("~", text))
    for _ in range(_ROUNDS):
        before = text
        for name, path in names.items():
            text = _replaced(text, name, path)
        text = _ADDED.sub(r"'\1\3'", _JOINED.sub(r"'\1/\3'", _TEMPLATE.sub(r"'\1'", text)))
        names = {match[1]: match[2] for match in itertools.islice(_ASSIGNED.finditer(text), _MAX_NAMES)}
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
