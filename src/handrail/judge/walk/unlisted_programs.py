"""Follow a command line among the arguments of a program that no table lists: after `--`, `exec`, `-c` and the like."""

from __future__ import annotations

from ..programs.tables import SHELLS
from ..values.data_files import Patterns, Words
from ..values.word_values import Arg, Value
from .walk import Call, Walk

_WORDS = Words(__file__)
_RE = Patterns(__file__)
_MAX_ARGUMENT = 4096


def follow(walk: Walk, call: Call) -> None:
    """Judge what it would run, if its arguments hold a command line."""
    args = call.args
    after_word = False
    for place, arg in enumerate(args):
        before = args[place - 1] if place else ""
        led = (
            after_word
            or before in _WORDS.just_before_command
            or (before[:1] == "-" and _RE.before_command.fullmatch(before) is not None)
        )
        if led and _is_command(arg):
            walk.start(args[place:], call.stdin, under=call.name)
            return
        if " " in arg and len(arg) < _MAX_ARGUMENT:
            setting = _RE.setting.fullmatch(arg)
            text = setting[1] if setting else arg.lstrip("!|") if led or arg[0] in "!|" else ""
            texts = [text, *("".join(groups) for groups in _RE.calls.findall(arg))]
            for found in texts:
                if " " in found and _is_command(found.split(None, 1)[0]):
                    word = arg.word if found == arg else None
                    walk.start_text(Value(found, arg.taints, word), call.stdin, under=call.name)
        after_word = after_word or arg in _WORDS.before_command


def _is_command(word: str | Arg) -> bool:
    name = word.rsplit("/", 1)[-1]
    return name in SHELLS or name in _WORDS.commands or name.startswith("mkfs.")
