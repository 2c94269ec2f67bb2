"""Commands to disagree about: our own, and what becomes of them when they are cut, joined and quoted at random."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

_PIECES = [
    "'",
    '"',
    "\\",
    "$",
    "`",
    "(",
    ")",
    "{",
    "}",
    ";",
    "&",
    "|",
    "<",
    ">",
    "\n",
    " ",
    "#",
    "$(",
    "${",
    "$((",
    "))",
    "<<E\n",
    "\nE\n",
    "<<<",
    "&&",
    "||",
    ";;",
    "in",
    "do",
    "done",
    "fi",
    "then",
    "if ",
    "for i in ",
    "case x in ",
    "esac",
    "[[ ",
    " ]]",
    "((",
    "<(",
    "\\\n",
    "!",
    "~",
    "*",
    "=",
    "a=(",
    "x[1]=",
    "$'\\x41'",
    "${x:-",
    "2>&1",
    "function f ",
    "f() { ",
    "time ",
    "coproc ",
    "select i in ",
    "${#x}",
    "${x//a/b}",
    "|&",
    "&>",
    "{a,b}",
    '$"',
    "[",
    "]",
    "<<-E\n\t",
    "<<'E'\n",
    "${x%%",
    "${!x}",
    "$[",
    "@(",
    "!(",
    "while ",
    "until ",
    "else ",
    "elif ",
    ";&",
    ";;&",
    "{fd}>",
    "3<",
    ">|",
    "<>",
    "&>>",
    " -n ",
    "=~ ",
    "+=",
    "@",
    "?",
    "${x:1:2}",
]
_PAIRS = [
    ("$(", ")"),
    ("(", ")"),
    ('"', '"'),
    ("{ ", "; }"),
    ("`", "`"),
    ("if ", "; then :; fi"),
    ("${x:-", "}"),
    ("'", "'"),
    ("<(", ")"),
    ("for i in ", "; do ls; done"),
    ("while ", "; do :; done"),
    ("f() { ", "\n}"),
    ("((", "))"),
    ("$((", "))"),
    ("[[ ", " ]]"),
    ("case ", " in a) b;; esac"),
    ("case a in ", ") b;; esac"),
    ('"${x#', '}"'),
    ("cat <<E\n", "\nE\n"),
    ("x=(", ")"),
    ("! ", ""),
]


def own_commands() -> list[str]:
    """Commands written for this, one a paragraph."""
    return (Path(__file__).parent / "commands.txt").read_text().split("\n\n")


def mutated(chance: random.Random, pool: Sequence[str]) -> str:
    text = chance.choice(pool)
    for _ in range(chance.randint(1, 3)):
        kind, place = chance.random(), chance.randint(0, len(text))
        if kind < 0.45:
            text = text[:place] + chance.choice(_PIECES) + text[place:]
        elif kind < 0.6:
            text = text[:place] + text[place + chance.randint(1, 4) :]
        elif kind < 0.75:
            other = chance.choice(pool)
            start = chance.randint(0, len(other))
            text = text[:place] + other[start : start + chance.randint(1, 30)] + text[place:]
        elif kind < 0.9:
            before, after = chance.choice(_PAIRS)
            end = chance.randint(place, len(text))
            text = text[:place] + before + text[place:end] + after + text[end:]
        else:
            text += chance.choice(["; ", " | ", " && ", "\n", " & ", " || "]) + chance.choice(pool)
    return text[:600]
