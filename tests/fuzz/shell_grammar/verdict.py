"""Ask all three about one text, and say in which way they differ."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Iterator

from handrail.judge.grammar.lexical import RESERVED

from .ours import Tree, ours
from .theirs import NotComparable, bash, shfmt

# `<< -x` is printed as `<<-x`, which is another operator.
_DASHED_DELIMITER = re.compile(r"<<(?:(?:[ \t]|\\\n)+['\"\\]?|['\"\\])-")


# The words of `let` are not kept as words, so without the `;` before it there is nothing to compare.
_UNLIKE_ITSELF = re.compile(r"\blet\b")


class Outcome(enum.StrEnum):
    """How the three stand to one another."""

    SAME = "all three read the same"
    REFUSED = "we refuse it: a person is asked"
    BASH_REFUSES = "bash refuses it: nothing would run"
    SHFMT_REFUSES = "shfmt refuses it, bash reads the same as we"
    SHFMT_DIFFERS = "shfmt reads something else, bash the same as we"
    BASH_DIFFERS = "bash prints it otherwise, with the same words or as shfmt and we read it"
    UNPRINTABLE = "what bash prints cannot be read again, shfmt reads something else or nothing"
    DIFFERENT = "neither reads the same as we"


def compare(text: str) -> Outcome:
    text = text.rstrip("\\")  # bash drops a last backslash when it prints
    mine = ours(text)
    if mine is None:
        return Outcome.REFUSED
    try:
        other = shfmt(text)
    except NotComparable:
        other = None
    try:
        real = bash(text)
    except NotComparable:  # words that are no longer reserved behind a redirection, which is printed last
        return Outcome.BASH_DIFFERS if mine == other else Outcome.UNPRINTABLE
    if real is None:
        return Outcome.BASH_REFUSES
    if _as_printed(mine) == _as_printed(real):
        return Outcome.SHFMT_REFUSES if other is None else Outcome.SAME if mine == other else Outcome.SHFMT_DIFFERS
    # After a here-document bash prints no `;`: what can be compared then is the words.
    if _misprinted(mine) or _DASHED_DELIMITER.search(text) or ("<<" in text and _UNLIKE_ITSELF.search(text)):
        return Outcome.BASH_DIFFERS if mine == other else Outcome.UNPRINTABLE
    same_words = "<<" in text and list(_words(mine)) == list(_words(real))
    return Outcome.BASH_DIFFERS if mine == other or same_words else Outcome.DIFFERENT


def _misprinted(tree: Tree) -> bool:
    """Whether bash prints it as something else: a reserved word that stands behind a redirection, where it is none, comes
    first, and a program called `-p` after `time !` loses the `!`, which makes it an option."""
    if not isinstance(tree, tuple):
        return False
    if tree[:1] == ("pipe",) and tree[2] and tree[3] and tree[3][0][:2] == ("simple", ()):
        words = tree[3][0][2]
        if words and words[0] in ((("text", "-p"),), (("text", "--"),)):
            return True
    if tree[:2] == ("simple", ()) and tree[2] and tree[3] and tree[2][0][0][1] in RESERVED:
        return True
    return any(map(_misprinted, tree))


def _words(tree: Tree) -> Iterator[Tree]:
    """Every word of every command, in order."""
    if isinstance(tree, tuple) and tree and tree[0] == "simple":
        yield from tree[2]
    elif isinstance(tree, tuple):
        for part in tree:
            yield from _words(part)


def _joined(parts: Iterable[Tree]) -> Iterator[Tree]:
    """Texts that follow one another, as one."""
    text = ""
    for part in parts:
        if part[0] == "text":
            text += part[1]
            continue
        if text:
            yield ("text", text)
        text = ""
        yield part
    if text:
        yield ("text", text)


def _filled(parts: Tree) -> Iterator[Tree]:
    """The three expressions of a loop, a 1 where there is none."""
    for place, part in enumerate(parts):
        if part[0] == "text":
            texts = part[1].split(";")
            edges = (0 if place == 0 else None, len(texts) - 1 if place == len(parts) - 1 else None)
            inside = range(1, len(texts) - 1)
            part = ("text", ";".join(t or "1" if n in edges or n in inside else t for n, t in enumerate(texts)))
        yield part


def _as_printed(tree: Tree) -> Tree:
    """What stays the same when bash prints what it has read."""
    if not isinstance(tree, tuple):
        return tree
    tree = tuple(map(_as_printed, tree))
    kind = tree[0] if tree else None
    if kind == "text" and len(tree) == 2:  # blanks in an index that is part of a word
        return (kind, " ".join(re.split(r"[ \t\n]+", re.sub(r"[ \t]*;", ";", tree[1]))))
    if kind == "$" and len(tree) > 2 and isinstance(tree[2], tuple):  # quotes of the kind $'..' are gone from an index
        tree = (*tree[:2], tuple(("text", part[1]) if part[0] == "quoted" else part for part in tree[2]), *tree[3:])
        tree = (*tree[:2], tuple(_joined(tree[2])), *tree[3:])
    if kind == "redirect" and tree[1] == "":
        tree = (kind, "0" if tree[2][0] == "<" else "1" if tree[2][0] == ">" else "", *tree[2:])
    if kind == "redirect" and tree[2] == "<&" and tree[3] == (("text", "-"),):  # closed all the same
        tree = (*tree[:2], ">&", tree[3])
    if kind == "redirect" and tree[2] == "<>" and tree[1] in "01":  # printed as if the default were 1
        return (kind, "", *tree[2:])
    if kind == "[[":  # a lone word is printed as `-n word`
        return (kind, tuple(word for word in tree[1] if word != (("text", "-n"),)), *tree[2:])
    if kind == "function" and tree[2][0] != "group":  # printed inside braces
        return (
            kind,
            tree[1],
            ("group", (("list", False, (("", ("pipe", False, False, (tree[2],))),)),), ()),
            *tree[3:],
        )
    if kind == "for((":  # what is left out is printed as 1
        return (kind, tuple(_filled(tree[1])), *tree[2:])
    return tree
