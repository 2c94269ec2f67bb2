"""Which files a program changes: what the command itself had written into them is not what they hold any more."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator

from ..programs.data_programs import DATA_PROGRAMS
from ..programs.interpreter_table import LANGUAGES, SHELLS
from ..programs.wrapper_options import skip_options
from ..programs.wrapper_table import WRAPPERS
from ..values.word_values import Arg, unknown
from .walk import Call, Walk

_MAX_OPERANDS = 64
_EDITORS = frozenset("ed red ex vi vim nvim view gvim emacs nano pico micro joe kak hx mcedit".split())
_READERS = DATA_PROGRAMS | SHELLS | LANGUAGES.keys() | frozenset(WRAPPERS) | frozenset(("tee", "sponge"))
"""Programs that leave the files alone that they are given, unless one of the functions below says otherwise."""
_READERS -= frozenset("patch truncate dd split csplit unix2dos rpl sd sponge".split()) | _EDITORS
_IN_PLACE = re.compile(r"-[a-zA-Z0-9]*i.*|--in-place(?:=.*)?")
_EXTRACTS = re.compile(r"-?[a-zA-Z]*x[a-zA-Z]*|--extract|--get")
_ARCHIVE = re.compile(r"\.(?:tar|t?[gx7]z|zip|t?bz2?|zst|cpio|jar|whl|deb|rpm)\b")
_OUTPUT = re.compile(r"-[a-zA-Z]*o|--o(?:utput|ut)?")
_OUTPUT_ATTACHED = re.compile(r"(?:-o|--output=)(.+)")


def changed_files(walk: Walk, call: Call) -> None:
    """Forget what files hold that this program changes; those that it edits in place are unknown from now on."""
    changes = _CHANGES.get(call.name)
    if changes is not None:
        for path in changes(walk, call):
            walk.state.write(walk.path(path), unknown())
    elif walk.state.files and call.name not in _READERS:
        _written_before(walk, call)


def _written_before(walk: Walk, call: Call) -> None:
    """A program about which nothing is known may change each file that it is given."""
    for arg in call.args[:_MAX_OPERANDS]:
        path = arg.partition("=")[2] if arg[:1] == "-" or arg.startswith("of=") else str(arg)
        if path and not path.startswith("/dev/") and walk.written_file(path) is not None:
            walk.state.write(walk.path(path), unknown())


def _operands(call: Call, letters: str = "") -> list[Arg]:
    start, _ = skip_options(call.args, letters)
    return [arg for arg in call.args[start:] if arg[:1] != "-"]


def _edited(_: Walk, call: Call) -> Iterator[str]:
    """An editor may write each file that it opens."""
    for place, arg in enumerate(call.args):
        before = call.args[place - 1] if place else ""
        if arg[:1] not in ("-", "+") and not re.fullmatch(r"-[a-zA-Z]*[cS]|--cmd|-e[sS]?c", before):
            yield arg


def _sed(_: Walk, call: Call) -> Iterator[str]:
    if any(_IN_PLACE.fullmatch(arg) for arg in call.args):
        given = [arg for arg in call.args if re.match(r"-\w*[ef]|--(?:expression|file)", arg)]
        yield from _operands(call, "efl")[0 if given else 1 :]


def _language(walk: Walk, call: Call) -> Iterator[str]:
    """`perl -pi -e code file`, `ruby -i -pe code file`."""
    if any(re.fullmatch(r"-[pnlaw0-9]*i.*", arg) for arg in call.args):
        yield from (arg for arg in call.args if arg[:1] != "-" and walk.written_file(arg) is not None)


def _awk(_: Walk, call: Call) -> Iterator[str]:
    if any(arg in ("inplace", "-iinplace", "--include=inplace") for arg in call.args):
        yield from _operands(call, "Fvfie")


def _sort(_: Walk, call: Call) -> Iterator[str]:
    for place, arg in enumerate(call.args):
        if arg[:1] != "-" or "o" not in arg:
            continue
        if match := _OUTPUT_ATTACHED.fullmatch(arg):
            yield match[1]
        elif _OUTPUT.fullmatch(arg):
            yield from call.args[place + 1 : place + 2]


def _second(_: Walk, call: Call) -> Iterator[str]:
    """`uniq from to`, `xxd -r from to`."""
    yield from _operands(call, "fswlcgo")[1:2]


def _every(_: Walk, call: Call) -> Iterator[str]:
    yield from _operands(call, "sr")


def _patch(walk: Walk, call: Call) -> Iterator[str]:
    """The files that a patch changes are named in it."""
    if call.name == "git" and not {"apply", "am"}.intersection(call.args[:4]):
        return
    yield from _all(walk, "")
    yield from _operands(call, "pdiorFVBbzD")[:1]


def _unpacked(walk: Walk, call: Call) -> Iterator[str]:
    extracts = call.name not in ("tar", "bsdtar", "gtar") or any(_EXTRACTS.fullmatch(arg) for arg in call.args[:3])
    if extracts:
        into = next((after for arg, after in itertools.pairwise(call.args) if arg in ("-C", "-d")), "")
        yield from (path for path in _all(walk, into) if not _ARCHIVE.search(path))


def _all(walk: Walk, folder: str) -> Iterator[str]:
    """The files that the command wrote, below a folder."""
    below = f"{walk.path(folder).rstrip('/')}/" if folder else ""
    yield from [
        path for path in walk.state.files if path.startswith(below) and path[-1:] != "/" and path[:5] != "/dev/"
    ]


def _split(walk: Walk, call: Call) -> Iterator[str]:
    """`split file prefix`."""
    prefix = next(iter(_operands(call, "abClnt")[1:2]), "x")
    yield from (path for path in walk.state.files if path.rpartition("/")[2].startswith(prefix.rpartition("/")[2]))


_CHANGES: dict[str, Callable[[Walk, Call], Iterator[str]]] = {
    **dict.fromkeys(("sed", "gsed"), _sed),
    **dict.fromkeys(("perl", "ruby"), _language),
    **dict.fromkeys(("awk", "gawk"), _awk),
    **dict.fromkeys(_EDITORS, _edited),
    "sort": _sort,
    **dict.fromkeys(("uniq", "xxd"), _second),
    **dict.fromkeys(("truncate", "unix2dos", "dos2unix"), _every),
    **dict.fromkeys(("patch", "git"), _patch),
    **dict.fromkeys(("tar", "bsdtar", "gtar", "unzip", "7z", "cpio"), _unpacked),
    **dict.fromkeys(("split", "csplit"), _split),
}
