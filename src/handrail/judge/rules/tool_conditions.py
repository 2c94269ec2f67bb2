"""Conditions on the words of a command line, on signals and processes, and on single tools with a syntax of their own."""

import functools
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from itertools import pairwise

from ..grammar.sql import folded, is_dangerous
from ..programs.endless_loops import loops_forever
from ..programs.tables import option_value
from ..values.data_files import Patterns, Words, read_tables
from ..values.taints import Taint
from ..values.word_values import UNKNOWN
from .command import Command

_WORDS = Words(__file__)
_RE = Patterns(__file__)
_TABLES = read_tables(__file__)
_CLIENTS = _TABLES["clients"]
"""Options whose value is SQL; after a `;` those whose value is a file of SQL. `*` when operands are SQL too."""
_POSTED = ("curl", "http")
SQL_CLIENTS = (*_CLIENTS, *_POSTED)


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


def own_processes(command: Command, _: str) -> bool:
    """The arguments were found by looking for Handrail's processes: `kill $(pgrep handrail)`."""
    return any(Taint.OWN in arg.taints for arg in command.args)


def bus(command: Command, parameter: str) -> bool:
    """A method with such a name is called over D-Bus."""
    words = (word for arg in command.args for word in (*arg.lower().split("."), arg) if _RE.bus.fullmatch(word))
    return any(_one_of(word, _globs(parameter)) for word in words)


def framework_db(command: Command, _: str) -> bool:
    """A task of a web framework that drops, empties or rolls back its database."""
    if "migrate" in command.args and command.args[-1] == "zero":
        return True
    if "dbshell" in command.args and command.stdin is not None and not command.stdin.known:
        return True
    for place, arg in enumerate(command.args[:8]):
        if not _RE.framework_db.fullmatch(arg):
            continue
        before = command.args[place - 1] if place else ""
        is_led = before.endswith(("manage.py", "django-admin", "flask", "db"))
        if is_led or arg not in _WORDS.of_a_framework or (arg == "flush" and command.name == "django-admin"):
            return True
    return False


def whole_tree(command: Command, _: str) -> bool:
    """The paths given to git are everything, or a directory with all that is in it."""
    return any(operand in _WORDS.whole_tree or operand.endswith("/") for operand in command.operands[1:]) or any(
        value in _WORDS.whole_tree for option, value in command.values if option == "--pathspec-from-file"
    )


def staged_only(command: Command, _: str) -> bool:
    staged = command.has(("--staged", "-S", "--cached"))
    return staged and not command.has(("--worktree", "-W"))


def git_config(command: Command, _: str) -> bool:
    """Sets, adds or removes an entry that makes git run something or go elsewhere."""
    operands = command.operands[1:]
    if not operands or operands[0] in ("get", "list") or command.has(_WORDS.git_reads_settings):
        return False
    if operands[0] in ("set", "unset", "remove-section", "rename-section", "edit"):
        operands = operands[1:]
        return any(_RE.runs_programs.fullmatch(operand) for operand in operands[:1])
    if operands[0].lower().startswith("alias.") and len(operands) > 1 and operands[1][:1] != "!":
        return False
    if len(operands) == 2 and _RE.usual_program.fullmatch(operands[1]):
        return False
    removes = command.has(("--unset", "--unset-all", "--add", "--replace-all", "--remove-section"))
    return bool(_RE.runs_programs.fullmatch(operands[0])) and (len(operands) > 1 or removes)


def stdin(command: Command, _: str) -> bool:
    """Something is piped or redirected in."""
    return command.stdin is not None


def _targets(command: Command) -> list[str]:
    """The process ids: what follows the signal."""
    found: list[str] = []
    signal_seen = skip = False
    for arg in command.args:
        if skip:
            skip, signal_seen = False, True
        elif arg in ("-s", "-n", "--signal"):
            skip = True
        elif arg == "--" or (arg[:1] == "-" and not signal_seen):
            signal_seen = True
        elif not arg.startswith("--"):
            found.append(arg)
    return found


def kills(command: Command, parameter: str) -> bool:
    """`kill -9 -1`: every process that may be signalled; `kill 1`: the first one."""
    may_end = _WORDS.probes.isdisjoint(command.args)
    return may_end and any(re.fullmatch(parameter, target) for target in _targets(command))


def kills_hard(command: Command, _: str) -> bool:
    """With a signal that cannot be caught, or processes that come from a listing or a file."""
    if not _WORDS.probes.isdisjoint(command.args):
        return False
    signal = command.value("-s", "-n", "--signal")
    if any(map(_RE.hard.fullmatch, (signal or "", *(arg for arg in command.args[:2] if arg[:1] == "-")))):
        return True
    if any(_RE.mild.fullmatch(arg) for arg in (signal or "", *command.args[:1])):
        return False
    return any(Taint.WIDE in arg.taints or (UNKNOWN in arg and arg.taints) for arg in command.args)


def any_process(command: Command, _: str) -> bool:
    """A pattern that fits every process."""
    if command.name == "killall" and not command.has(("-r", "--regexp")):
        return False
    selects = ("-u", "-U", "-P", "-t", "-g", "-G", "--euid", "--uid", "--parent")
    if not command.operands or command.has((*selects, "-0", "-l", "--list", "-c", "--count")):
        return False
    return all(map(_RE.everything.fullmatch, command.operands))


def source_forks(command: Command, _: str) -> bool:
    """The program that is to be compiled, as far as this command line holds it, forks forever."""
    sources = [command.stdin, *(command.file(operand) for operand in command.operands)]
    return any("fork" in source.text and loops_forever(source.text) for source in sources if source is not None)


def endless_input(command: Command, _: str) -> bool:
    """Any number of processes in parallel, from an endless list."""
    endless = command.stdin is not None and Taint.ENDLESS in command.stdin.taints
    return endless and _RE.at_once.search(" ".join(command.args)) is not None


def sql(command: Command, _: str) -> bool:
    """A statement that destroys or changes whole tables, in an option, an operand, a file or what is piped in."""
    in_memory = command.operands[:1] == [":memory:"] and "attach" not in " ".join(command.args).lower()
    given = [value for option, value in command.values if option in ("-v", "--set", "--variable")]
    return not in_memory and any(is_dangerous(_with_variables(text, given)) for text in _sql_texts(command))


def _with_variables(text: str, given: Sequence[str]) -> str:
    """The text with psql's variables filled in: `:name`, as options and `\\set` define them."""
    variables = dict(value.partition("=")[::2] for value in given)
    variables |= dict(re.findall(r"(?m)^\s*\\set\s+(\w+)\s+(.*)$", text))
    return re.sub(r"(?<![:\w]):(\w+)", lambda match: variables.get(match[1], match[0]), text) if variables else text


def _sql_texts(command: Command) -> Iterator[str]:
    if command.name in _POSTED:
        posted = (value for option, value in command.values if option.startswith(("-d", "--data")))
        yield from filter(re.compile(r"(?i)\s*(?:drop|truncate|delete|alter)\b").match, posted)
        return
    options, files = (part.split() for part in _CLIENTS[command.name].partition(";")[::2])
    for arg, following in pairwise((*command.args, None)):
        assert arg is not None
        given = [value for option in options if (value := option_value(option, arg, following)) is not None]
        yield from given
        named = (option_value(option, arg, following) for option in files)
        yield from (content.text for path in named if path and (content := command.file(path)) is not None)
        if "*" in options and not given and re.search(r"\s|/\*|;", arg):
            yield arg
    if command.stdin is not None:
        yield command.stdin.text


def redis(command: Command, _: str) -> bool:
    """Empties the store, stops or reconfigures the server, or deletes keys that the command does not name."""
    operands = command.operands
    whole = folded(" ".join(operands))
    if _RE.redis.search(whole) or (command.stdin is not None and _RE.redis.search(command.stdin.text)):
        return not operands or operands[0].lower() not in _WORDS.harmless_of_redis
    if not operands or operands[0].lower() not in ("del", "unlink", "hdel", "expire"):
        return False
    some = any(UNKNOWN in key or Taint.WIDE in key.taints or key.glob or "*" in key for key in operands[1:])
    return some or len(operands) == 1


def matches(command: Command, parameter: str) -> bool:
    """An argument, or what is piped in, holds what a pattern of the file beside this one says."""
    texts = [*command.args, *([command.stdin.text[:20_000]] if command.stdin is not None else [])]
    return any(re.search(_TABLES["texts"][parameter], text) for text in texts)
