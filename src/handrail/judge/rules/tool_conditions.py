"""Conditions on the words of a command line, and on single tools with a syntax of their own."""

from __future__ import annotations

import functools
import re
from fnmatch import fnmatchcase

from ..values.data_files import Patterns, Words
from ..values.word_values import Taint
from .command import Command

_WORDS = Words(__file__)
_RE = Patterns(__file__)


@functools.cache
def _globs(parameter: str) -> list[str]:
    return parameter.lower().split("|")


def _one_of(text: str, globs: list[str]) -> bool:
    text = text.lower()
    return any(text == glob if "*" not in glob and "?" not in glob else fnmatchcase(text, glob) for glob in globs)


def any_(command: Command, parameter: str) -> bool:
    """An argument, option or operand, that matches."""
    globs = _globs(parameter)
    return any(len(arg) < 400 and _one_of(arg, globs) for arg in command.args)


def first(command: Command, parameter: str) -> bool:
    return bool(command.operands) and _one_of(command.operands[0], _globs(parameter))


def second(command: Command, parameter: str) -> bool:
    return len(command.operands) > 1 and _one_of(command.operands[1], _globs(parameter))


def last(command: Command, parameter: str) -> bool:
    return bool(command.operands) and _one_of(command.operands[-1], _globs(parameter))


def text(command: Command, parameter: str) -> bool:
    """The arguments, or what is piped in, somewhere hold one of these texts."""
    whole = " ".join(command.args)[:20000].lower()
    if command.stdin is not None:
        whole += "\n" + command.stdin.text[:20000].lower()
    return any(fnmatchcase(whole, f"*{glob.strip('*')}*") for glob in _globs(parameter))


def bus(command: Command, parameter: str) -> bool:
    """A method with such a name is called over D-Bus."""
    wanted = _globs(parameter)
    return any(
        _one_of(word, wanted)
        for arg in command.args
        for word in (*arg.lower().split("."), arg)
        if _RE.bus.fullmatch(word)
    )


def framework_db(command: Command, _: str) -> bool:
    """A task of a web framework that drops, empties or rolls back its database."""
    if "migrate" in command.args and command.args[-1] == "zero":
        return True
    if "dbshell" in command.args and command.stdin is not None and not command.stdin.known:
        return True
    for place, arg in enumerate(command.args[:8]):
        if not _RE.framework_db.fullmatch(arg):
            continue
        if arg in ("flush", "wipe", "ef", "typeorm", "createsuperuser", "changepassword", "downgrade"):
            before = command.args[place - 1] if place else ""
            if not (
                before.endswith(("manage.py", "django-admin", "flask", "db"))
                or (arg == "flush" and command.name == "django-admin")
            ):
                continue
        return True
    return False


def ansible_changes(command: Command, _: str) -> bool:
    """An ad-hoc module that changes the machines; the commands of `shell`, `raw` and `command` are judged themselves."""
    modules = command.given("-m", "--module-name")
    return any(
        module.rpartition(".")[2]
        in (
            "reboot shutdown user group service systemd file script apt yum dnf package copy "
            "template lineinfile blockinfile cron "
            "win_reboot win_shell win_command replace mount filesystem parted lvol authorized_key sysctl "
            "iptables ufw firewalld hostname unarchive get_url expect pip"
        ).split()
        for module in modules
    )


def shell_operand(command: Command, _: str) -> bool:
    return any(
        operand.rsplit("/", 1)[-1] in ("sh", "bash", "zsh", "dash", "ksh", "fish", "su") for operand in command.operands
    )


def whole_tree(command: Command, _: str) -> bool:
    """The paths given to git are everything, or a directory with all that is in it."""
    return any(operand in _WORDS.whole_tree or operand.endswith("/") for operand in command.operands[1:]) or any(
        value in _WORDS.whole_tree for option, value in command.values if option == "--pathspec-from-file"
    )


def staged_only(command: Command, _: str) -> bool:
    staged = command.has(("--staged", "-S", "--cached"))
    return staged and not command.has(("--worktree", "-W"))


def refspec(command: Command, _: str) -> bool:
    """A refspec that forces (`+main`) or deletes (`:main`)."""
    return any(operand[:1] in ("+", ":") and len(operand) > 1 for operand in command.operands[1:])


def git_config(command: Command, _: str) -> bool:
    """Sets, adds or removes an entry that makes git run something or go elsewhere."""
    operands = command.operands[1:]
    reads = command.has(
        ("--get", "--get-all", "--get-regexp", "-l", "--list", "--get-urlmatch", "--show-origin", "--name-only")
    )
    if reads or not operands:
        return False
    if operands[0] in ("get", "list"):
        return False
    if operands[0] in ("set", "unset", "remove-section", "rename-section", "edit"):
        operands = operands[1:]
        return any(_RE.runs_programs.fullmatch(operand) for operand in operands[:1])
    if operands[0].lower().startswith("alias.") and len(operands) > 1 and operands[1][:1] != "!":
        return False
    removes = command.has(("--unset", "--unset-all", "--add", "--replace-all", "--remove-section"))
    return bool(_RE.runs_programs.fullmatch(operands[0])) and (len(operands) > 1 or removes)


def pacman_removes(command: Command, _: str) -> bool:
    return (
        any(re.match(r"-R", word) for word in command.words)
        or "--remove" in command.words
        or any(re.fullmatch(r"-Sc+|-Scc|-Sy{1,2}u?u{2}", word) for word in command.words)
    )


def screen_quits(command: Command, _: str) -> bool:
    return "X" in command.letters and any(arg in ("quit", "kill") for arg in command.args)


def stdin(command: Command, _: str) -> bool:
    """Something is piped or redirected in."""
    return command.stdin is not None


def wide_operands(command: Command, _: str) -> bool:
    """Operands that come from a listing."""
    return any(Taint.WIDE in operand.taints for operand in command.operands)
