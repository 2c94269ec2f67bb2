"""Recognise a destructive use of a program without rules, by the words in sub-command position."""

import functools
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from ..programs.long_options import options_of
from ..programs.tables import DATA_PROGRAMS, LANGUAGES, SHELLS, WRAPPERS
from ..values.data_files import Patterns, Words, read_tables
from ..values.paths import Classes
from ..values.word_values import Arg
from .command import Command
from .targets import READERS, WRITERS

_WORDS = Words(__file__)
_RE = Patterns(__file__)
_FIRST = _WORDS.verbs | _WORDS.first
_LATER = _WORDS.verbs | {"publish", "empty"}
_JOINED = _WORDS.verbs - {"forget"} | {"evict", "expire", "unload", "deactivate", "unlink"}
_OPTIONS = frozenset(dash + option for option in _WORDS.options for dash in ("-", "--"))
_WRITTEN = {
    name: options.split()
    for names, options in read_tables(__file__)["written by option"].items()
    for name in names.split()
}
"""By program: options that name a file or folder which it writes, where their names do not say so."""
_SETTINGS = ("/etc/", "/boot/")
_NOBODYS_SETTINGS = ("/etc/shadow", "/etc/gshadow", "/etc/sudoers")
_READ_BY_MANY = (".ssh/config", ".gitconfig")
_MAX_TEXT = 20_000


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
    if command.has_long and not has_rules and options_of(name, command.operands) is None:
        starts = tuple(word for word in given if len(word) > 4)
        if any(option.startswith(word) for word in starts for option in _WORDS.abbreviated):
            return True
    if command.operands and _by_words(command):
        return True
    if not has_rules and not _WORDS.unasked.isdisjoint(given) and _WORDS.harmless.isdisjoint(command.operands[:2]):
        return True  # it would ask by itself, and is told not to
    if any(option in _WORDS.actions and _is_verb(value, first=True) for option, value in command.values):
        return True  # --action=reboot
    if _by_text(command):
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


def _destructive_option(word: str) -> bool:
    if word in _OPTIONS:
        return True
    if len(word) < 7:
        return False
    parts = [part.lower() for part in _RE.parts.findall(word)]
    if len(parts) == 1:
        glued = _with_nouns("glued").fullmatch(parts[0]) or _RE.glued_option.fullmatch(parts[0])
        return word[:2] == "--" and glued is not None
    if parts[0] in _WORDS.no_verb_before or not (_WORDS.of_text | _WORDS.about_when).isdisjoint(parts):
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
    cheap = (parts[-1], parts[0] if len(parts) == 2 else "")
    if not _WORDS.cheap.isdisjoint(cheap) or not _WORDS.caches.isdisjoint(parts):
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
    own = command.name.endswith(("ctl", "cli", "adm", "console"))  # its input is for no shell
    return any(_begins_with_verb(line) or (own and _is_verb(line.strip(), first=True)) for line in lines)


def _begins_with_verb(text: str) -> bool:
    word = text.split(None, 1)[0].rstrip(";") if text.strip() else ""
    return word not in _WORDS.programs and (_is_verb(word, first=True) or _is_compound(word))


class _Given(NamedTuple):
    path: Arg
    option: str
    """The option that it is the value of; empty for an operand."""
    last: bool
    """It is the last of several operands, where the result mostly goes."""


def protected_arguments(command: Command, *, has_rules: bool) -> list[Arg]:
    """The paths of files of the system, of keys, or of what runs by itself that the program may write."""
    found = _sent_away(command) or list(_found(command, has_rules=has_rules))
    return found or (list(_in_texts(command)) if command.name in _WORDS.prompts else [])


def reveals_secrets(command: Command) -> bool:
    """Whether the words of a program without rules say that it shows keys or passwords: `token print`, `export --secrets`."""
    words = [word for word in (*command.operands[:4], *command.words) if "/" not in word and len(word) < 40]
    parts = {part.lower() for word in words for part in _RE.parts.findall(word)}
    return not _WORDS.secrets.isdisjoint(parts) and not _WORDS.shows.isdisjoint(parts)


def _sent_away(command: Command) -> list[Arg]:
    """Keys and passwords among the operands, when another operand is a place on another machine."""
    if command.name in _WORDS.senders:
        return [arg for arg in command.args if "/" in arg and "credential" in command.classes(arg.lstrip("@"))]
    if len(command.operands) < 2 or ":" not in "".join(command.operands):
        return []
    operands = [arg for place, arg in enumerate(command.operands) if place not in command.maybe]
    if not any(map(_RE.elsewhere.match, operands)):
        return []
    return [arg for arg in operands if arg[:1] in ("/", "~") and "credential" in command.classes(arg)]


def own_arguments(command: Command) -> bool:
    """Whether a program that is not known only to read is given a path of Handrail's own files."""
    if command.name in _WORDS.own_readers:
        return False
    pieces = (piece for arg in command.args if " " not in arg for piece in (arg, *re.split(r"[=,:@]", arg), arg[2:]))
    return any("own" in command.classes(piece) for piece in pieces if "/" in piece or "~" in piece)


def _whole_homes(command: Command) -> Iterator[Arg]:
    """A home itself or the root of the file system as the place where results go, and any of the system's that is emptied."""
    for given in _given(command):
        wanted = _WORDS.not_emptied if given.option in _WORDS.emptied else ("root", "home-root")
        if _RE.destination.fullmatch(given.option) and command.any_class(wanted, [given.path]):
            yield given.path


def _found(command: Command, *, has_rules: bool) -> Iterator[Arg]:
    name = command.name
    is_understood = name in WRITERS or name in READERS or name in _WORDS.readers or name in _WORDS.names
    known = has_rules or is_understood
    yield from _whole_homes(command)
    written = _WRITTEN.get(name, ())
    for given in _given(command):
        kinds = command.classes(given.path)
        if kinds.isdisjoint(_WORDS.by_itself | _WORDS.of_the_system):
            continue
        if given.option in written or (known and name not in _WORDS.looks and _may_write(name, given, kinds)):
            yield given.path
            continue
        if name in _WORDS.names:
            continue
        if "credential" in kinds and name in _WORDS.readers and name not in READERS:
            yield given.path
            continue
        if given.option:
            if not is_understood and _by_option(given, kinds, known=known):
                yield given.path
        elif known:
            if given.last and not is_understood:
                yield given.path
        elif given.last or not kinds.isdisjoint(_WORDS.by_itself) or given.path.startswith(_SETTINGS):
            yield given.path


def _may_write(name: str, given: _Given, kinds: Classes) -> bool:
    """Whether a known program may write what it is given there: what starts by itself is nobody's input."""
    path, option = given.path, given.option
    starts = not kinds.isdisjoint(("startup", "own", "hook"))
    if not option:
        return name in _WORDS.fetch and given.last and (starts or path.startswith("/etc/"))
    if _RE.looked_at.match(option):
        return False
    if path.startswith(_NOBODYS_SETTINGS):
        return name != "visudo"
    names_output = _RE.output.fullmatch(option) or _RE.destination.fullmatch(option)
    if option[:2] == "--" and "device" not in kinds and names_output:
        return True
    return starts and _RE.input.fullmatch(option) is None


def _by_option(given: _Given, kinds: Classes, *, known: bool) -> bool:
    """Whether the value of an option may be written, or is a secret that is read as input."""
    option = given.option
    if _RE.output.fullmatch(option):
        return not (known and option in ("-d", "-D", "-P", "-w"))
    if given.path.startswith(_NOBODYS_SETTINGS):
        return True
    if known:
        return False
    if not _RE.input.fullmatch(option):
        return not kinds.isdisjoint(_WORDS.by_itself)
    is_input = kinds.isdisjoint(_WORDS.never_input) or given.path.endswith(_READ_BY_MANY)
    return not is_input or ("credential" in kinds and option in _WORDS.lists)


def _given(command: Command) -> Iterator[_Given]:
    operands = sum(arg[:1] != "-" for arg in command.args)
    is_staged = any(arg.startswith("DESTDIR=") and arg[8:] for arg in command.args)
    seen, before = 0, ""
    for arg in command.args:
        is_short = len(arg) < 4 and (before[:2] != "--" or (before, arg) == ("--prefix", "/"))  # of keys in a store
        seen += arg[:1] != "-"
        is_below = is_staged and _RE.below_stage.match(arg)
        if is_short or is_below or len(arg) > 1000 or ("/" not in arg and "~" not in arg):
            pass
        elif arg[:1] == "-":
            yield from _in_option(arg)
        else:
            takes = before if before[:1] == "-" and "=" not in before else ""
            yield from _in_operand(arg, takes, last=seen == operands > 1)
        before = str(arg)


def _in_option(arg: Arg) -> Iterator[_Given]:
    """Paths in `--log=/x`, `-o/x`, `-M--log=/x`, `-Xlog:/x`."""
    option, equals, value = arg.partition("=")
    option = re.sub(r"^-(?:D|P|p:)(?=\w)", "--", option[max(option.rfind("--"), 0) :])
    if equals:
        yield from (_Given(arg.like(piece), option, last=False) for piece in _pieces(value))
    elif arg[2:3] in ("/", "~"):
        yield _Given(arg.like(arg[2:]), arg[:2], last=False)
    elif named := _RE.after_colon.fullmatch(arg):
        yield _Given(arg.like(named[2]), named[1], last=False)


def _in_operand(arg: Arg, takes: str, *, last: bool) -> Iterator[_Given]:
    """Paths in an operand, or in the value of the option that it follows: `/x`, `key=/x`, `@/x`, `dir:/x`."""
    if (setting := _RE.setting.fullmatch(arg)) and takes[:5] != "--set":
        yield _Given(arg.like(setting[1]), "--output", last=False)
    elif _RE.named.fullmatch(arg):
        for key, value in _RE.pairs.findall(arg):
            yield from (_Given(arg.like(piece), f"--{key}", last=False) for piece in _pieces(value))
    elif arg[:1] == "@":
        yield _Given(arg.like(arg[1:]), takes, last=False)
    elif " " not in arg:
        if "]/" in arg:
            yield from (_Given(arg.like(piece), "--output", last=False) for piece in _pieces(arg)[1:])
        inner = _RE.prefixed.fullmatch(arg)
        yield _Given(arg.like(inner[1]) if inner else arg, takes, last=last)


def _pieces(value: str) -> list[str]:
    """The value of an option, and the paths in it: `src=/etc/x,dst=y`, `/etc/x:/y`."""
    inner = re.split(r"[=,:;|\]]", value) if "://" not in value else []
    return [value, *(piece for piece in inner if piece[:1] in ("/", "~") and piece != value)]


def _in_texts(command: Command) -> Iterator[Arg]:
    """Paths in a text that the program runs: what must not be written, and keys that a query reads."""
    pairs = pairwise((Arg(""), *command.args))
    texts = [arg for before, arg in pairs if before in _WORDS.code_options or " " in arg]
    texts += [Arg(arg[1:]) for arg in command.args if arg[:1] == "+"]
    if command.stdin is not None and command.stdin.known:
        texts.append(Arg(command.stdin.text[:_MAX_TEXT]))
    reads = () if command.name in LANGUAGES else ("credential",)
    for text in texts:
        if len(text) > _MAX_TEXT:
            continue
        wanted = ("startup", "credential", "own", "hook") if _RE.writing_word.search(text) else reads
        for path in _RE.paths.findall(text):
            if not command.classes(path).isdisjoint(wanted):
                yield Arg(path)
