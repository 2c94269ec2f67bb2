"""Follow a command line among the arguments of a program that no table lists: after `--`, `exec`, `-c` and the like."""

from __future__ import annotations

import re

from ..programs.interpreter_table import SHELLS
from ..values.word_values import Arg, Value
from .walk import Call, Walk

_COMMANDS = SHELLS | frozenset(
    "rm dd shred find truncate chmod chown kill pkill killall reboot shutdown poweroff halt systemctl service mkfs wipefs "
    "iptables nft ufw userdel useradd usermod passwd sudo doas su env nohup timeout xargs tee curl wget crontab umount "
    "docker kubectl git psql mysql redis-cli dropdb python python3 perl ruby node".split()
)
"""Names that are not plausible for a task or a sub-command of another program."""
_BEFORE_COMMAND = frozenset(
    "-- exec run ssh shell cmd command run-command runCommand run-script guest-exec runProgramInGuest type send-text "
    "dispatch script job foreach --exec --command --cmd --run --shell".split()
)
_JUST_BEFORE_COMMAND = frozenset(("-c", "-e", "-x", "-r"))
_MAX_ARGUMENT = 4096
_SETTING = re.compile(r"[\w.:/-]+=[!'\"|;]*(.*)", re.S)


def follow(walk: Walk, call: Call) -> None:
    """Judge what it would run, if its arguments hold a command line."""
    args = call.args
    after_word = False
    for place, arg in enumerate(args):
        led = after_word or (place > 0 and args[place - 1] in _JUST_BEFORE_COMMAND)
        if led and _is_command(arg):
            with walk.wrapped(call.name), walk.subshell():
                walk.run(args[place:], call.stdin, functions=False, builtins=False)
            return
        if " " in arg and len(arg) < _MAX_ARGUMENT:
            setting = _SETTING.fullmatch(arg)
            text = setting[1] if setting else str(arg) if led else ""
            if " " in text and _is_command(text.split(None, 1)[0]):
                with walk.wrapped(call.name), walk.subshell():
                    walk.run_text(Value(text, arg.taints, None if setting else arg.word), call.stdin, "-c")
        after_word = after_word or arg in _BEFORE_COMMAND


def _is_command(word: str | Arg) -> bool:
    name = word.rsplit("/", 1)[-1]
    return name in _COMMANDS or name.startswith("mkfs.")
