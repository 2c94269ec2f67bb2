"""Where a program's output comes from, as far as that is known without running it."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence

from ..programs.secret_names import secret_taints
from ..values.data_files import Patterns, Words, read_tables
from ..values.word_values import UNKNOWN, Arg, Taint, Taints, Value, taints_of, unknown
from .script_files import here
from .sources import absolute
from .walk import Call, Walk

_WORDS = Words(__file__)
_RE = Patterns(__file__)
_NOTHING: Taints = frozenset()
_TABLES = read_tables(__file__)
_DUMPING = {program: words.split() for program, words in _TABLES["dumping"].items()}
_ENV_SCRIPTS = _TABLES["env scripts"] | dict.fromkeys(_WORDS.initialising, r"|init\b.*|--alias.*")
"""Programs whose output is made to be evaluated (`eval "$(ssh-agent -s)"`), with the arguments for that."""
_WITH_PROVENANCE = frozenset(("openssl", "history", "yes", "seq", *_DUMPING, *_ENV_SCRIPTS)).union(
    _WORDS.network, _WORDS.storage, _WORDS.readers, _WORDS.secret_stores, _WORDS.listers, _WORDS.archivers,
    _WORDS.environment, _WORDS.finders, _WORDS.dumpers, _WORDS.surveillance, _WORDS.completing,
)  # fmt: skip
"""Programs about whose output something is known."""
_ALWAYS = {"yes": Taint.ENDLESS, "seq": Taint.ENDLESS, **dict.fromkeys(_WORDS.listers, Taint.WIDE)}


def unknown_output(walk: Walk, call: Call) -> Value:
    """What a program prints that is not computed: unknown, but its sources may be known."""
    name, args = call.name, call.args
    if name not in _WITH_PROVENANCE:
        return Value(UNKNOWN, call.stdin.taints - {Taint.ENDLESS}) if call.stdin is not None else Value(UNKNOWN)
    taints: set[Taint] = set(call.stdin.taints) if call.stdin is not None else set()
    if name in _WORDS.network or (name == "openssl" and "s_client" in args):
        taints.add(Taint.NETWORK)
    if name in _WORDS.storage and not _WORDS.fetching.isdisjoint(args):
        taints.add(Taint.NETWORK)
    if name in _WORDS.readers:
        for arg in args:
            if arg.taints:
                taints |= arg.taints
            if arg[:1] != "-":
                taints |= _read_taints(walk, arg)
    if _shows_private(name, args):
        taints.add(Taint.PRIVATE)
    if _shows_secrets(walk, name, args):
        taints.add(Taint.CREDENTIAL)
    if name in _ALWAYS and (name != "seq" or any(_RE.huge.search(arg) or arg[:3] == "inf" for arg in args)):
        taints.add(_ALWAYS[name])
    if _prints_env_script(name, " ".join(args)):
        taints.add(Taint.ENV_SCRIPT)
    return unknown(taints - {Taint.ENDLESS} if ends(name, args) else taints)


def ends(name: str, args: Sequence[Arg]) -> bool:
    """Whether a program stops reading by itself."""
    if name == "head":
        return not any(_RE.huge.search(arg) for arg in args)
    if name == "dd":
        return any(arg.startswith("count=") for arg in args)
    return name not in _WORDS.endless_too


def _read_taints(walk: Walk, arg: Arg) -> Taints:
    if not arg:
        return _NOTHING
    known = walk.known_file(arg)
    if known is not None:
        return known.taints
    return walk.file_taints(arg.removeprefix("if="))


def _shows_private(name: str, args: Sequence[Arg]) -> bool:
    if name in _DUMPING:
        return any(word in args for word in _DUMPING[name])
    return (
        name in _WORDS.dumpers or name in _WORDS.surveillance or (name == "printenv" and any(map(secret_taints, args)))
    )


def _shows_secrets(walk: Walk, name: str, arguments: Sequence[Arg]) -> bool:
    if name in _WORDS.environment:
        return all(arg[:1] == "-" and "f" not in arg.lower() for arg in arguments)
    if name in _WORDS.secret_stores or name == "history":
        return True
    if name in _WORDS.archivers:
        roots = [arg for arg in arguments if arg[:1] in ("~", "/")]
        return any(not walk.classes(arg).isdisjoint(("home-root", "root", "system-root")) for arg in roots)
    if name in _WORDS.finders:
        return any(not walk.classes(arg).isdisjoint(_WORDS.secret_files) for arg in arguments if arg[:1] != "-")
    return False


def _prints_env_script(name: str, args: str) -> bool:
    """`eval "$(ssh-agent -s)"`, `source <(kubectl completion bash)`."""
    if name in _ENV_SCRIPTS and re.fullmatch(_ENV_SCRIPTS[name], args):
        return True
    return name in _WORDS.completing and re.fullmatch(r"(.* )?completions?\b.*", args) is not None


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
