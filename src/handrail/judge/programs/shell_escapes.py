"""Which programs let their user open a shell: started with the rights of root, that is a root shell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..values.data_files import Patterns, Words

_WORDS = Words(__file__)
_RE = Patterns(__file__)


def raised(under: Iterable[str]) -> bool:
    """Whether one of the programs that it was started through changes the rights."""
    return not _WORDS.raisers.isdisjoint(under)


def opens_root_shell(under: Sequence[str], name: str, args: Sequence[str], *, followed: bool) -> bool:
    """Whether this program, started through the others and reading the terminal, lets its user open a root shell.

    `followed`: what it runs in turn has been judged already.
    """
    if not raised(under):
        return False
    if name in _WORDS.multiplexers:
        return _WORDS.no_shell.isdisjoint(args) and not (name == "tmux" and len(args) > 1 and " " in args[-1])
    if name in _WORDS.editors:
        return not only_describes_itself(args)
    if name in _WORDS.prompts:
        return _WORDS.batch.isdisjoint(args)
    return not followed and name not in _WORDS.about_files and any(_RE.shell_path.fullmatch(arg) for arg in args)


def only_describes_itself(args: Sequence[str]) -> bool:
    """Whether it is asked for its version or help."""
    return bool(args) and args[0] in ("--version", "-version", "-V", "-v", "--help", "-h")
