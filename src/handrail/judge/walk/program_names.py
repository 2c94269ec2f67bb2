"""Which programs a partly unknown command name may stand for."""

from __future__ import annotations

import functools
import re
from fnmatch import translate

from ..grammar.syntax import DoubleQuoted, Parameter
from ..programs.tables import CONTAINERS, LANGUAGES, REMOTE, SHELLS, WRAPPERS
from ..rules import Rulebook
from ..values.word_values import UNKNOWN, Arg

_MAX_CANDIDATES = 8
_MAX_NAME = 64
_MIN_KNOWN = 3
_TOOLS = frozenset(
    "CC CXX CPP LD AR MAKE EDITOR VISUAL PAGER BROWSER PYTHON PYTHON3 PIP NODE NPM CARGO GO JAVA RUBY PERL GCC CLANG CMAKE "
    "RUSTC DOCKER KUBECTL HELM TERRAFORM GIT PSQL".split()
)
"""Variables that by convention hold the name of a tool."""
_OFTEN = ("rm", "sh", "bash", "dd", "find", "curl", "chmod", "cat")


def possible_names(name: Arg, rulebook: Rulebook) -> list[str] | None:
    """The programs that it may be; the name itself when none of them matters; None when it may be anything."""
    base = name.rsplit("/", 1)[-1]
    if not name or len(base) > _MAX_NAME:
        return [str(name)] if name and UNKNOWN not in name else None
    if UNKNOWN not in base:
        if not name.glob or not re.search(r"[*?\[]", base):
            return [base]
        found = _matching(base, _names(rulebook))
        return None if len(found) > _MAX_CANDIDATES else found or [base]
    if base == UNKNOWN:
        return [base] if name == UNKNOWN and _is_tool(name) else None
    if len(base.replace(UNKNOWN, "")) < _MIN_KNOWN:
        return None
    return None if _matching(base.replace(UNKNOWN, "*"), _names(rulebook)) else [base]


def _is_tool(name: Arg) -> bool:
    """`$CC`, `"$EDITOR"`, `${PYTHON:-..}`: variables that hold a program by convention."""
    if name.word is None or len(name.word.parts) != 1:
        return False
    part = name.word.parts[0]
    if isinstance(part, DoubleQuoted) and len(part.parts) == 1:
        part = part.parts[0]
    return isinstance(part, Parameter) and part.name in _TOOLS


def _matching(pattern: str, names: tuple[str, ...]) -> list[str]:
    matches = re.compile(translate(pattern)).match
    return [name for name in names if matches(name)]


@functools.lru_cache(8)
def _names(rulebook: Rulebook) -> tuple[str, ...]:
    every = {
        *rulebook.names(),
        *WRAPPERS,
        *SHELLS,
        *LANGUAGES,
        *CONTAINERS,
        *REMOTE,
        "eval",
        "source",
        "xargs",
        "su",
        "find",
        *(f"mkfs.{kind}" for kind in ("ext2", "ext3", "ext4", "xfs", "btrfs", "vfat", "fat", "ntfs", "f2fs")),
    }
    return (*_OFTEN, *sorted(every.difference(_OFTEN)))
