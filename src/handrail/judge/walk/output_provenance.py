"""Where a program's output comes from, as far as that is known without running it."""

from __future__ import annotations

from collections.abc import Sequence

from ..programs.env_script_printers import ENV_SCRIPT_PRINTERS, prints_env_script
from ..programs.secret_names import secret_taints
from ..values.data_files import Patterns, Words
from ..values.word_values import UNKNOWN, Arg, Taint, Taints, Value, unknown
from .walk import Call, Walk

_WORDS = Words(__file__)
_RE = Patterns(__file__)
_NOTHING: Taints = frozenset()
_DUMPING = {
    "etcdctl": frozenset(("--prefix", "snapshot", "--from-key")),
    "redis-cli": frozenset(("--rdb",)),
    "consul": frozenset(("export", "snapshot")),
    "sqlite3": frozenset((".dump",)),
}
"""Programs that print a whole store when one of these words is among their arguments."""
_WITH_PROVENANCE = frozenset(("openssl", "history", "yes", "seq", *_DUMPING, *ENV_SCRIPT_PRINTERS)).union(
    _WORDS.network, _WORDS.storage, _WORDS.readers, _WORDS.secret_stores, _WORDS.listers, _WORDS.archivers,
    _WORDS.environment, _WORDS.finders, _WORDS.dumpers, _WORDS.surveillance,
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
    if prints_env_script(name, args):
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
        return not _DUMPING[name].isdisjoint(args)
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
