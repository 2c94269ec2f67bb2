"""Recognise a destructive use of a program without rules, by the words in sub-command position."""

from __future__ import annotations

from itertools import pairwise

from ..programs.data_programs import DATA_PROGRAMS
from ..programs.interpreter_table import SHELLS
from ..programs.long_options import options_of
from ..programs.wrapper_table import WRAPPERS
from ..values.data_files import lazy_pattern, read_tables
from .command import Command

_LISTS = read_tables(__file__)[""]
_WORDS = {name: frozenset(words.split()) for name, words in _LISTS.items()}
_VERBS = _WORDS["verbs"]
_FIRST = _VERBS | _WORDS["first"]
_PROGRAMS = _WORDS["programs"]
_LATER = _VERBS | {"publish"}
_JOINED = _VERBS - {"forget"} | {"evict", "expire", "unload", "deactivate", "unlink"}
_NO_VERB_BEFORE = _WORDS["no verb before"]
_NOUN_LIST = _LISTS["nouns"].replace(" ", "|")
_NOUNS = _WORDS["nouns"]
_GLUED = lazy_pattern(
    rf"(?:remove|delete|destroy|uninstall|purge|wipe|erase)[a-z0-9]{{2,}}(?<![drs])|(?:del|rm|drop|kill|stop)(?:{_NOUN_LIST})|"
    r"[a-z]+(?:delete|remove|destroy|uninstall|purge|erase)|[a-z]{2,}(?:(?<!p)reset|(?<!on)stop|kill)"
)
_GLUED_OPTION = lazy_pattern(r"del(?![aeitu])[a-z]+")
_CHEAP = _WORDS["cheap"]
_CACHES = frozenset(("cache", "caches", "cached"))
_RECKLESS = frozenset(("unsafe", "force", "hard"))
_OPTIONS = frozenset(dash + option for option in _WORDS["options"] for dash in ("-", "--"))
_ABBREVIATED = tuple(
    "--delete --destroy --purge --wipe --erase --uninstall --factory-reset --obliterate --expunge".split()
)
_ALWAYS_LOST = frozenset("delete destroy wipe erase purge uninstall terminate nuke revoke unregister".split())
_LOST_FOR_GOOD = frozenset(("erase", "wipe", "destroy", "uninstall"))
_LOST_WITH_NOUN = frozenset("remove del rm disable reset clear expire forget drop kill".split())
_ABOUT_WHEN = _WORDS["about when"]
_OF_TEXT = _WORDS["of text"]
_ACTIONS = frozenset("--action --op --operation --command --cmd --mode --do --state --service --task --control".split())
_NAMING_OPTIONS = _WORDS["naming options"]
_NAMING_LETTERS = frozenset("-n -m -t -b -d -l -o -f -k -g -s -e -p -T -N".split())
_TEXT_OPTIONS = frozenset("-c -q -e -x --command --execute --eval --exec --cmd --query".split())
_PROMPTS = lazy_pattern(r".*(?:shell|cli|console|ctl|cmd|client|adm|admin|sh|sql|admc)")
_NOUN = lazy_pattern(r"[a-z][a-z0-9_.:/-]{0,30}|[0-9]{1,6}")
_WORD = lazy_pattern(r"[\w:.-]+")
_WHERE = lazy_pattern(r"/dev/\S+|[\w.:/\\%$-]+@[\w.-]+|[a-z+]+://\S+|\d+\.\d+\.\d+\.\d+")
_PARTS = lazy_pattern(r"[A-Z]?[a-z0-9]+|[A-Z0-9]+")
_FILE = lazy_pattern(r".*\.[a-z0-9]{1,8}")
_NAME = lazy_pattern(
    r".*[-_.](?:remove|delete|purge|uninstall)\w+|(?:.*[-_.])?(?:delete|destroy|purge|wipe|erase|"
    r"uninstall|shutdown|reboot|poweroff|killall|nuke|remove|rm|stop|kill|reset|umount|unmount|drop|"
    r"rmdir|restart|disable|disconnect|poweroff|detach)(?:[-_.](?:all|force|sh|py|data|db|disk|fs|private))*|"
    rf"[a-z0-9]*(?:del|rm|remove|delete|destroy|wipe|erase|purge)(?:{_NOUN_LIST})"
)
_CMDLET = lazy_pattern(
    r"(?:Remove|Stop|Clear|Disable|Uninstall|Reset|Restart|Format|Revoke|Suspend|Unregister|Unpublish)-[A-Z]\w+"
)
_TELLING_CMDLET = lazy_pattern(
    r"(?:Get|Test|Select|Where|Format|Out|Write|Find|Measure|Compare|Show|Sort|ConvertTo|ConvertFrom)-[A-Z]"
)
_REFUSALS = frozenset("never no false off none 0".split())
_HARMLESS = _WORDS["harmless"]
_NEVER_BY_NAME = frozenset("rm rmdir stop kill unmount umount remove drop reset systemd-umount".split())


def destructive(command: Command, *, has_rules: bool) -> bool:
    """Whether its words say that something will be destroyed, removed or stopped: the first operands, an option, a command
    given as text, or the name of a program that has no rules."""
    name = command.name
    if name in DATA_PROGRAMS or name in SHELLS or name.startswith("-"):
        return False
    if name in WRAPPERS and len(command.operands) > len(command.maybe):
        return False  # the words are those of another command line, which is judged by itself
    if _TELLING_CMDLET.match(name):
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
    named = name not in _NEVER_BY_NAME and len(name) > 4 and _NAME.fullmatch(name) is not None
    return named or _CMDLET.fullmatch(name) is not None


def _refused(command: Command) -> set[str]:
    """The options that are switched off: `--destroy=never`."""
    return {option for option, value in command.values if value.lower() in _REFUSALS}


def _abbreviates(word: str) -> bool:
    """Whether it can be an abbreviation of an option that destroys something."""
    return len(word) > 4 and any(option.startswith(word) for option in _ABBREVIATED)


def _destructive_option(word: str) -> bool:
    if word in _OPTIONS:
        return True
    if len(word) < 7:
        return False
    parts = [part.lower() for part in _PARTS.findall(word)]
    if len(parts) == 1:
        return word[:2] == "--" and (_GLUED.fullmatch(parts[0]) or _GLUED_OPTION.fullmatch(parts[0])) is not None
    if parts[0] in _NO_VERB_BEFORE or not _OF_TEXT.isdisjoint(parts) or not _ABOUT_WHEN.isdisjoint(parts):
        return False
    sad = not _NOUNS.isdisjoint(parts)
    if parts[0] in _ALWAYS_LOST or (sad and parts[0] in _LOST_WITH_NOUN):
        return True
    if word[:2] != "--" or _ALWAYS_LOST.isdisjoint(parts):
        return False
    return sad or "and" in parts or parts[-1] in _LOST_FOR_GOOD


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
        if operand.partition(":")[0] in _HARMLESS:
            return False
        if not _NOUN.fullmatch(operand) or "." in operand:
            if place in maybe or (seen == 0 and _WHERE.fullmatch(operand)):
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
    return option in _NAMING_OPTIONS or (option in _NAMING_LETTERS and not _is_verb(operand, first=True))


def _is_verb(word: str, *, first: bool) -> bool:
    word = word.lower()
    return word in (_FIRST if first else _LATER) or word in ("factoryreset", "factory-reset")


def _is_compound(word: str) -> bool:
    """`delete-stack`, `module:disable`, `vm.destroy`, `deleteAccount`, `removerepo`, but not `no-delete` or `delete-x.py`."""
    if not _WORD.fullmatch(word):
        return False
    parts = [part.lower() for part in _PARTS.findall(word)]
    if len(parts) < 2:
        return _GLUED.fullmatch(word) is not None
    if parts[0] in _NO_VERB_BEFORE:
        return False
    if _FILE.fullmatch(word) and parts[-1] not in _JOINED:
        return False
    if parts[-1] in _CHEAP or (parts[0] in _CHEAP and len(parts) == 2) or not _CACHES.isdisjoint(parts):
        return False
    if parts[0] in _JOINED or parts[-1] in _JOINED:
        return True
    inner = _JOINED if parts[0] in _RECKLESS or parts[-1] == "all" else _ALWAYS_LOST
    return any(verb in inner for verb, noun in pairwise(parts) if noun in _NOUNS)


def _costs_nothing(command: Command, place: int, seen: int) -> bool:
    """Whether the verb is about a cache or the like, is the value of an option, or formats texts."""
    operands, verb = command.operands, command.operands[place]
    if place and not _CHEAP.isdisjoint(_PARTS.findall(operands[place - 1])):
        return True
    if operands[place + 1 : place + 2] in (["cache"], ["caches"]):
        return True
    if verb == "format":
        return not any(word.startswith("/dev/") or "disk" in word or "storage" in word for word in command.args)
    return seen == 0 and place in command.maybe and len(operands) == place + 1 and verb in ("clear", "reset", "empty")


def _by_values(command: Command) -> bool:
    """`--action=reboot`."""
    return any(option in _ACTIONS and _is_verb(value, first=True) for option, value in command.values)


def _by_text(command: Command) -> bool:
    """A command of the program's own language, in an option (`-c 'delete queue x'`) or as the input of its prompt."""
    args = command.args
    for option, text in pairwise(args):
        if option in _TEXT_OPTIONS and " " in text and _begins_with_verb(text):
            return True
    operands = command.operands
    if len(operands) > 2 or not any(_PROMPTS.fullmatch(word) for word in (command.name, *operands)):
        return False
    lines: list[str] = [operand for operand in operands if " " in operand]
    if command.stdin is not None:
        lines += command.stdin.text[:2000].splitlines()
    return any(_begins_with_verb(line) for line in lines)


def _begins_with_verb(text: str) -> bool:
    word = text.split(None, 1)[0].rstrip(";") if text.strip() else ""
    return word not in _PROGRAMS and (_is_verb(word, first=True) or _is_compound(word))
