"""Where a program's output comes from, as far as that is known without running it."""

import functools
import posixpath
import re
from collections.abc import Callable, Container, Sequence

from ..values.data_files import Patterns, Words, read_tables
from ..values.disk import absolute
from ..values.taints import (
    CREDENTIAL,
    ENDLESS,
    ENV_SCRIPT,
    NETWORK,
    NO_TAINTS,
    OWN,
    PRIVATE,
    WIDE,
    Taint,
    Taints,
    secret_taints,
    taints_of,
)
from ..values.word_values import UNKNOWN, Arg, Computed, Value
from .script_files import here
from .walk import Call, Walk

_WORDS = Words(__file__)
_RE = Patterns(__file__)
_TABLES = read_tables(__file__)
_DUMPING = {program: frozenset(words.split()) for program, words in _TABLES["dumping"].items()}
_ENV_SCRIPTS = _TABLES["env scripts"] | dict.fromkeys(_WORDS.initialising, r"|init\b.*|--alias.*")
"""Programs whose output is made to be evaluated (`eval "$(ssh-agent -s)"`), with the arguments for that."""


def unknown_output(walk: Walk, call: Call) -> Value:
    """What a program prints that is not computed: unknown, but its sources may be known."""
    taints = NO_TAINTS if call.stdin is None else call.stdin.taints
    for check in _checks(call.name):
        taints |= check(walk, call)
    if Taint.ENDLESS in taints and ends(call.name, call.args):
        taints -= ENDLESS
    return computed(call, taints)


def computed(call: Call, taints: Taints = NO_TAINTS) -> Value:
    """What a program makes of its arguments: those with blanks may be in it, and what a substitution puts in."""
    texts = [str(arg) for arg in call.args if " " in arg]
    if isinstance(call.stdin, Computed):
        texts.append(call.stdin.program)
    return Computed(_RE.substitutes.sub(_lines, "\n".join(texts)), taints) if texts else Value(UNKNOWN, taints)


def _lines(match: re.Match[str]) -> str:
    parts = re.split(rf"(?<!\\){re.escape(match[1])}", match[0])
    return "\n".join(parts).replace(f"\\{match[1]}", match[1])


def ends(name: str, args: Sequence[Arg]) -> bool:
    """Whether a program stops reading by itself."""
    if name == "head":
        return not any(map(_is_huge, args))
    if name == "dd":
        return any(arg.startswith("count=") for arg in args)
    return name not in _WORDS.endless_too


def _is_huge(arg: str) -> bool:
    return _RE.huge.search(arg) is not None or arg[:3] == "inf"


def _of_files(walk: Walk, call: Call) -> Taints:
    """What is in the files that it prints."""
    taints = taints_of(call.args)
    for arg in call.args:
        if arg and arg[:1] != "-":
            known = walk.known_file(arg)
            taints |= known.taints if known is not None else walk.file_taints(arg.removeprefix("if="))
    return taints


def _shows_secrets(walk: Walk, call: Call) -> Taints:
    name, args = call.name, call.args
    if name in _WORDS.environment:
        shows = all(arg[:1] == "-" and "f" not in arg.lower() for arg in args)
    elif name in _WORDS.archivers:
        roots = (arg for arg in args if arg[:1] in ("~", "/"))
        shows = any(not walk.classes(arg).isdisjoint(("home-root", "root", "system-root")) for arg in roots)
    elif name in _WORDS.finders:
        shows = any(not walk.classes(arg).isdisjoint(_WORDS.secret_files) for arg in args if arg[:1] != "-")
    else:
        shows = True
    return CREDENTIAL if shows else NO_TAINTS


def _prints_env_script(_: Walk, call: Call) -> Taints:
    """`eval "$(ssh-agent -s)"`, `source <(kubectl completion bash)`."""
    name, args = call.name, " ".join(call.args)
    prints = (name in _ENV_SCRIPTS and re.fullmatch(_ENV_SCRIPTS[name], args)) or (
        name in _WORDS.completing and re.fullmatch(r"(.* )?completions?\b.*", args)
    )
    return ENV_SCRIPT if prints else NO_TAINTS


_CHECKS: tuple[tuple[Container[str], Callable[[Walk, Call], Taints]], ...] = (
    (_WORDS.network, lambda *_: NETWORK),
    (("openssl",), lambda _, call: NETWORK if "s_client" in call.args else NO_TAINTS),
    (_WORDS.storage, lambda _, call: NO_TAINTS if _WORDS.fetching.isdisjoint(call.args) else NETWORK),
    (_WORDS.readers, _of_files),
    (_DUMPING, lambda _, call: NO_TAINTS if _DUMPING[call.name].isdisjoint(call.args) else PRIVATE),
    (_WORDS.dumpers | _WORDS.surveillance, lambda *_: PRIVATE),
    (("printenv",), lambda _, call: PRIVATE if any(map(secret_taints, call.args)) else NO_TAINTS),
    (_WORDS.environment | _WORDS.secret_stores | _WORDS.archivers | _WORDS.finders | {"history"}, _shows_secrets),
    (_WORDS.listers, lambda *_: WIDE),
    (_WORDS.tells_processes, lambda _, call: OWN if "handrail" in " ".join(call.args).lower() else NO_TAINTS),
    (("yes",), lambda *_: ENDLESS),
    (("seq",), lambda _, call: ENDLESS if any(map(_is_huge, call.args)) else NO_TAINTS),
    (_ENV_SCRIPTS.keys() | _WORDS.completing, _prints_env_script),
)
"""What is known about the output of these programs."""


@functools.cache
def _checks(name: str) -> tuple[Callable[[Walk, Call], Taints], ...]:
    return tuple(check for programs, check in _CHECKS if name in programs)


def path_output(walk: Walk, call: Call) -> Value | None:
    """What programs print that only work on paths (pwd, dirname, mktemp); None for another one, or when it is not known."""
    if call.name not in _WORDS.on_paths:
        return None
    operands = [arg for arg in call.args if arg[:1] != "-"]
    text = _printed(walk, call, operands)
    return None if text is None else Value(f"{text}\n", taints_of(operands))


def _printed(walk: Walk, call: Call, operands: list[Arg]) -> str | None:
    if call.name == "pwd":
        return walk.cwd
    if call.name == "mktemp":
        plain = not operands and all(arg in ("-d", "-q", "-t", "--directory") for arg in call.args)
        return f"/tmp/tmp.{UNKNOWN}" if plain and walk.lookup("TMPDIR") is None else None
    if call.name == "git":
        is_top = list(call.args) == ["rev-parse", "--show-toplevel"] and walk.sources is not None
        return walk.sources.root(here(walk), walk.judgement.project) if is_top and walk.sources is not None else None
    if not operands:
        return None
    first = str(operands[0])
    if call.name == "dirname":
        return (posixpath.dirname(first.rstrip("/")) or ".") if len(operands) == 1 and first else None
    if call.name == "basename":
        name = posixpath.basename(first.rstrip("/"))
        return name.removesuffix(operands[1]) if len(operands) > 1 else name
    if call.name == "readlink" and not any(arg in ("-f", "-e", "-m", "--canonicalize") for arg in call.args):
        return None
    return _resolved(walk, first)


def _resolved(walk: Walk, path: str) -> str | None:
    """Where a path leads, links followed: only with a disk to look at."""
    place = absolute(path, here(walk))
    if walk.sources is None or not place or UNKNOWN in place:
        return None
    found = walk.sources.entry(place)
    return found.path if found is not None else place
