"""Recognise a destructive use of a program without rules, by the words in sub-command position."""

from __future__ import annotations

import functools
import re
from itertools import pairwise

from ..programs.long_options import options_of
from ..programs.tables import DATA_PROGRAMS, SHELLS, WRAPPERS
from ..values.data_files import Patterns, Words
from .command import Command

_WORDS = Words(__file__)
_RE = Patterns(__file__)
_FIRST = _WORDS.verbs | _WORDS.first
_LATER = _WORDS.verbs | {"publish"}
_JOINED = _WORDS.verbs - {"forget"} | {"evict", "expire", "unload", "deactivate", "unlink"}
_OPTIONS = frozenset(dash + option for option in _WORDS.options for dash in ("-", "--"))
_ABBREVIATED = tuple(
    "--delete --destroy --purge --wipe --erase --uninstall --factory-reset --obliterate --expunge".split()
)


def destructive(command: Command, *, has_rules: bool) -> bool:
    """Whether its words say that something will be destroyed, removed or stopped: the first operands, an option, a command
    given as text, or the name of a program that has no rules."""
    name = command.name
    if name in DATA_PROGRAMS or name in SHELLS or name.startswith("-"):
        return False
    if name in WRAPPERS and len(command.operands) > len(command.maybe):
        return False  # the words are those of another command line, which is judged by itself
    if _RE.telling_cmdlet.match(name):
        return False
    given = command.words - _refused(command)
    if any(_destructive_option(word) for word in given):
        return True
    if (
        command.has_long
        and not has_rules
        and any(map(_abbreviates, given))
        and options_of(name, command.operands) is None
    ):
        return True
    if command.operands and _by_words(command):
        return True
    if _by_values(command) or _by_text(command):
        return True
    if has_rules or "/" in command.argv0:
        return False
    named = name not in _WORDS.never_by_name and len(name) > 4 and _with_nouns("name").fullmatch(name) is not None
    return named or _RE.cmdlet.fullmatch(name) is not None


@functools.cache
def _with_nouns(pattern: str) -> re.Pattern[str]:
    """One of the patterns in which NOUN stands for every noun."""
    return re.compile(getattr(_RE, pattern).pattern.replace("NOUN", f"(?:{'|'.join(sorted(_WORDS.nouns))})"))


def _refused(command: Command) -> set[str]:
    """The options that are switched off: `--destroy=never`."""
    return {option for option, value in command.values if value.lower() in _WORDS.refusals}


def _abbreviates(word: str) -> bool:
    """Whether it can be an abbreviation of an option that destroys something."""
    return len(word) > 4 and any(option.startswith(word) for option in _ABBREVIATED)


def _destructive_option(word: str) -> bool:
    if word in _OPTIONS:
        return True
    if len(word) < 7:
        return False
    parts = [part.lower() for part in _RE.parts.findall(word)]
    if len(parts) == 1:
        return (
            word[:2] == "--"
            and (_with_nouns("glued").fullmatch(parts[0]) or _RE.glued_option.fullmatch(parts[0])) is not None
        )
    if (
        parts[0] in _WORDS.no_verb_before
        or not _WORDS.of_text.isdisjoint(parts)
        or not _WORDS.about_when.isdisjoint(parts)
    ):
        return False
    sad = not _WORDS.nouns.isdisjoint(parts)
    if parts[0] in _WORDS.always_lost or (sad and parts[0] in _WORDS.lost_with_noun):
        return True
    if word[:2] != "--" or _WORDS.always_lost.isdisjoint(parts):
        return False
    return sad or "and" in parts or parts[-1] in _WORDS.lost_for_good


def _by_words(command: Command) -> bool:
    operands, maybe = command.operands, command.maybe
    seen = 0
    for place, operand in enumerate(operands[:6]):
        if len(operand) > 40:
            return False
        if _is_verb(operand, first=seen == 0) or (
            seen < 3 and (seen == 0 or "." not in operand) and _is_compound(operand)
        ):
            if place not in maybe or not _is_a_name(command, operand):
                return not _costs_nothing(command, place, seen)
            continue
        if operand.partition(":")[0] in _WORDS.harmless:
            return False
        if not _RE.noun.fullmatch(operand) or "." in operand:
            if place in maybe or (seen == 0 and _RE.where.fullmatch(operand)):
                continue
            return False
        if place not in maybe:
            seen += 1
        if seen >= 3:
            return False
    return False


def _is_a_name(command: Command, operand: str) -> bool:
    """Whether it follows an option that names something: `migrate dev --name drop_users`."""
    option = next((before for before, arg in pairwise(command.args) if arg is operand), "")
    return option in _WORDS.naming_options or (option in _WORDS.naming_letters and not _is_verb(operand, first=True))


def _is_verb(word: str, *, first: bool) -> bool:
    word = word.lower()
    return word in (_FIRST if first else _LATER) or word in ("factoryreset", "factory-reset")


def _is_compound(word: str) -> bool:
    """`delete-stack`, `module:disable`, `vm.destroy`, `deleteAccount`, `removerepo`, but not `no-delete` or `delete-x.py`."""
    if not _RE.word.fullmatch(word):
        return False
    parts = [part.lower() for part in _RE.parts.findall(word)]
    if len(parts) < 2:
        return _with_nouns("glued").fullmatch(word) is not None
    if parts[0] in _WORDS.no_verb_before:
        return False
    if _RE.file.fullmatch(word) and parts[-1] not in _JOINED:
        return False
    if (
        parts[-1] in _WORDS.cheap
        or (parts[0] in _WORDS.cheap and len(parts) == 2)
        or not _WORDS.caches.isdisjoint(parts)
    ):
        return False
    if parts[0] in _JOINED or parts[-1] in _JOINED:
        return True
    inner = _JOINED if parts[0] in _WORDS.reckless or parts[-1] == "all" else _WORDS.always_lost
    return any(verb in inner for verb, noun in pairwise(parts) if noun in _WORDS.nouns)


def _costs_nothing(command: Command, place: int, seen: int) -> bool:
    """Whether the verb is about a cache or the like, is the value of an option, or formats texts."""
    operands, verb = command.operands, command.operands[place]
    if place and not _WORDS.cheap.isdisjoint(_RE.parts.findall(operands[place - 1])):
        return True
    if operands[place + 1 : place + 2] in (["cache"], ["caches"]):
        return True
    if verb == "format":
        return not any(word.startswith("/dev/") or "disk" in word or "storage" in word for word in command.args)
    return seen == 0 and place in command.maybe and len(operands) == place + 1 and verb in ("clear", "reset", "empty")


def _by_values(command: Command) -> bool:
    """`--action=reboot`."""
    return any(option in _WORDS.actions and _is_verb(value, first=True) for option, value in command.values)


def _by_text(command: Command) -> bool:
    """A command of the program's own language, in an option (`-c 'delete queue x'`) or as the input of its prompt."""
    args = command.args
    for option, text in pairwise(args):
        if option in _WORDS.text_options and " " in text and _begins_with_verb(text):
            return True
    operands = command.operands
    if len(operands) > 2 or not any(_RE.prompts.fullmatch(word) for word in (command.name, *operands)):
        return False
    lines: list[str] = [operand for operand in operands if " " in operand]
    if command.stdin is not None:
        lines += command.stdin.text[:2000].splitlines()
    return any(_begins_with_verb(line) for line in lines)


def _begins_with_verb(text: str) -> bool:
    word = text.split(None, 1)[0].rstrip(";") if text.strip() else ""
    return word not in _WORDS.programs and (_is_verb(word, first=True) or _is_compound(word))
