"""Follow a command line among the arguments of a program that no table lists: after `--`, `exec`, `-c` and the like."""

from __future__ import annotations

from ..programs.interpreter_table import SHELLS
from ..values.data_files import Patterns, Words
from ..values.word_values import Arg, Value
from .walk import Call, Walk

_WORDS = Words(__file__)
_RE = Patterns(__file__)
_COMMANDS = SHELLS | frozenset(
    "rm dd shred find truncate chmod chown kill pkill killall reboot shutdown poweroff halt systemctl service mkfs wipefs "
    "iptables nft ufw userdel useradd usermod passwd sudo doas su env nohup timeout xargs tee curl wget crontab umount "
    "docker kubectl git psql mysql redis-cli dropdb python python3 perl ruby node".split()
)
"""Names that are not plausible for a task or a sub-command of another program."""
_MAX_ARGUMENT = 4096


def follow(walk: Walk, call: Call) -> None:
    """Judge what it would run, if its arguments hold a command line."""
    args = call.args
    after_word = False
    for place, arg in enumerate(args):
        led = after_word or (place > 0 and args[place - 1] in _WORDS.just_before_command)
        if led and _is_command(arg):
            with walk.wrapped(call.name), walk.subshell():
                walk.run(args[place:], call.stdin, functions=False, builtins=False)
            return
        if " " in arg and len(arg) < _MAX_ARGUMENT:
            setting = _RE.setting.fullmatch(arg)
            text = setting[1] if setting else str(arg) if led else ""
            if " " in text and _is_command(text.split(None, 1)[0]):
                with walk.wrapped(call.name), walk.subshell():
                    walk.run_text(Value(text, arg.taints, None if setting else arg.word), call.stdin, "-c")
        after_word = after_word or arg in _WORDS.before_command


def _is_command(word: str | Arg) -> bool:
    name = word.rsplit("/", 1)[-1]
    return name in _COMMANDS or name.startswith("mkfs.")
