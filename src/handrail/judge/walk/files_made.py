"""The files that a program writes: those whose content matters to later commands, and those that its options name."""

import itertools
import re
from collections.abc import Iterator, Sequence

from ..programs.tables import DATA_PROGRAMS, LANGUAGES, SHELLS, WRAPPERS, option_value, skip_options
from ..values.data_files import Patterns, Words, read_tables
from ..values.taints import ENDLESS, NETWORK, Taint
from ..values.word_values import EMPTY, UNKNOWN, Arg, OtherName, unknown
from .builtins import STDIN_PATHS
from .output_provenance import computed
from .script_files import entry
from .walk import Call, Known, Walk

_RE = Patterns(__file__)
_WORDS = Words(__file__)
_IN_PLACE = {name: option for names, option in read_tables(__file__)["in place"].items() for name in names.split()}
"""By program that changes the files it is given: the option with which it does so."""
_FETCHES = {name: options for names, options in read_tables(__file__)["fetches"].items() for name in names.split()}
_MAX_COPIES = 32
_MAX_OPERANDS = 64
_READERS = DATA_PROGRAMS | SHELLS | LANGUAGES.keys() | frozenset(WRAPPERS) | frozenset(("tee", "sponge"))
"""Programs that leave the files alone that they are given, unless one of the functions below says otherwise."""
_READERS -= frozenset("patch truncate dd split csplit unix2dos rpl sd sponge".split()) | _WORDS.editors
_OUTPUT_PREFIXES = tuple(f"{option}=" for option in sorted(_WORDS.output_options) if option.startswith("--"))


def files_made(walk: Walk, call: Call, known: Known) -> None:
    """Remember the files that a program makes, where their content matters to later commands: they may run them.

    What is in files that it changes is forgotten; those that it edits in place are unknown from now on.
    """
    if known.changer is not None:
        for path in known.changer(walk, call):
            walk.state.write(walk.path(path), computed(call))
    elif walk.state.files and call.name not in _READERS:
        _written_before(walk, call)
    if walk.state.files and not _WORDS.packs.isdisjoint((call.name, *call.args[:2])):
        for arg in call.args:
            if _RE.archive.search(arg):
                walk.state.write(walk.path(arg), unknown())
    if known.maker is not None and call.args:
        known.maker(walk, call)


def output_files(call: Call) -> Sequence[Arg]:
    """Absolute paths given with `-o`, `--output` and the like."""
    if call.name in _WORDS.other_o:
        return ()
    found: list[Arg] = []
    before = ""
    for arg in call.args:
        if before in _WORDS.output_options and arg[:1] in ("/", "~"):
            found.append(arg)
        elif (
            arg[:3] == "--o" and arg.startswith(_OUTPUT_PREFIXES) and (path := arg.partition("=")[2])[:1] in ("/", "~")
        ):
            found.append(arg.like(path))
        before = arg
    return found


def _fetched(walk: Walk, target: str) -> None:
    if target and target != "-":
        walk.state.write(walk.path(target), unknown(NETWORK))


def _fetched_below(walk: Walk, directory: str) -> None:
    """Anything in this directory may have come from the network."""
    walk.state.write(f"{walk.path(directory)}/", unknown(NETWORK))


def _fetcher(walk: Walk, call: Call) -> None:
    """Downloaders: the files that options name; without one, or with an option for that, those that the addresses name."""
    named, folders, by_address = (part.split() for part in _FETCHES[call.name].split(";"))
    pairs = list(itertools.pairwise([*call.args, Arg("")]))

    def values(options: list[str]) -> list[Arg]:
        found = (option_value(option, arg, following) for arg, following in pairs for option in options)
        return [value for value in found if value]

    files = values(named)
    letters = "".join(arg for arg in call.args if arg[:1] == "-" and arg[1:2] != "-")
    if not files if by_address == ["*"] else any(one in call.args or one[1:] in letters for one in by_address):
        folder = next((f"{value}/" for value in values(folders)), "")
        urls = [arg for arg in call.args if arg[:1] != "-" and "/" in arg and f"{arg}/" != folder]
        files += [Arg(f"{folder}{_last_part(url)}") for url in urls]
    for file in files:
        _fetched(walk, file)


def _downloaded(walk: Walk, call: Call) -> None:
    """`az storage blob download -f file`, `gh release download -O file`."""
    if not {"download", "download-batch", "get"}.isdisjoint(call.args):
        _fetcher(walk, call)
    _cloned(walk, call)


def _remote_copy(walk: Walk, call: Call) -> None:
    """`scp host:script .`, `aws s3 cp s3://bucket/script .`: the last operand gets what another machine has."""
    operands = [arg for arg in call.args if arg[:1] != "-"]
    if len(operands) > 1 and _RE.elsewhere.match(operands[-2]) and not _RE.elsewhere.match(operands[-1]):
        _fetched(walk, operands[-1])
        _fetched(walk, f"{operands[-1]}/{_last_part(operands[-2])}")
        if operands[-2].endswith("/") or any(_RE.recursive.fullmatch(arg) for arg in call.args):
            _fetched_below(walk, operands[-1])
    else:
        _copied(walk, call)


def _copied(walk: Walk, call: Call) -> None:
    """The target holds what the source held; a source that is on the disk is remembered by its path."""
    start, options = skip_options(call.args, "tSmgoZ", "target-directory suffix mode group owner")
    folder = next((value for option, value in options if option in ("-t", "--target-directory") and value), None)
    operands = [arg for arg in call.args[start:] if arg[:1] != "-" or arg == "-"]
    if len(operands) < (1 if folder is not None else 2):
        return
    sources, target = (operands, folder) if folder is not None else (operands[:-1], operands[-1])
    for source in sources[:_MAX_COPIES]:
        if Taint.ENDLESS in walk.file_taints(source) and call.name in ("cp", "gcp"):
            walk.on_write(target, ">", unknown(ENDLESS))
        content = call.stdin if source == "/dev/stdin" else walk.known_file(source)
        if content is None and (found := entry(walk, source)) is not None and not found.is_dir:
            content = OtherName(found.path)
        if content is None:
            content = unknown() if UNKNOWN in source else OtherName(source if "/" in source else f"./{source}")
        if folder is None and len(sources) == 1 and not target.endswith("/"):
            walk.state.write(walk.path(target), content)
        walk.state.write(walk.path(f"{target}/{_last_part(source)}"), content)


def _cloned(walk: Walk, call: Call) -> None:
    """`git clone address [directory]`."""
    args = call.args
    if call.name == "svn" and args[0] in ("export", "cat", "checkout", "co"):
        _fetched(walk, _last_part(args[-1]))
    if "clone" not in args:
        return
    start, _ = skip_options(args[args.index(Arg("clone")) + 1 :], "bojcu", "branch origin depth jobs config reference")
    operands = [arg for arg in args[args.index(Arg("clone")) + 1 + start :] if arg[:1] != "-"]
    if operands and (_RE.elsewhere.match(operands[0]) or call.name != "git"):
        _fetched_below(walk, operands[1] if len(operands) > 1 else _last_part(operands[0]).removesuffix(".git"))


def _unpacked(walk: Walk, call: Call) -> None:
    """An archive that came from the network, and what was in it."""
    contents = [call.stdin, *(walk.known_file(arg) for arg in call.args)]
    if not any(content is not None and Taint.NETWORK in content.taints for content in contents):
        return
    into = next((after for arg, after in itertools.pairwise(call.args) if arg in ("-C", "--directory", "-d")), ".")
    _fetched_below(walk, into)


def _last_part(url: str) -> str:
    return re.split(r"[?#]", url, maxsplit=1)[0].rstrip("/").rsplit("/", 1)[-1].rsplit(":", 1)[-1]


def _copied_by_dd(walk: Walk, call: Call) -> None:
    target = next((arg.like(arg[3:]) for arg in call.args if arg.startswith("of=")), None)
    source = next((arg.like(arg[3:]) for arg in call.args if arg.startswith("if=")), None)
    content = call.stdin if source is None or source in STDIN_PATHS else walk.known_file(source)
    if content is None and source is not None:
        content = OtherName(source if "/" in source else f"./{source}")
    if target is not None and content is not None:
        plain = all(arg.startswith(("if=", "of=", "status=", "bs=")) for arg in call.args)
        walk.state.write(walk.path(target), content if plain else unknown(content.taints))


def _logged(walk: Walk, call: Call) -> None:
    """`logsave file command`."""
    start, _ = skip_options(call.args)
    if start < len(call.args):
        walk.on_write(call.args[start], ">", unknown())


def _written_before(walk: Walk, call: Call) -> None:
    """A program about which nothing is known may change each file that it is given."""
    for arg in call.args[:_MAX_OPERANDS]:
        path = arg.partition("=")[2] if arg[:1] == "-" or arg.startswith("of=") else str(arg)
        if path and not path.startswith("/dev/") and walk.written_file(path) is not None:
            walk.state.write(walk.path(path), unknown())


def _options_made(walk: Walk, call: Call) -> None:
    """`touch -- -rf`: a name that a program will take for an option."""
    for arg in call.args[call.args.index(Arg("--")) + 1 :] if "--" in call.args else ():
        if arg[:1] == "-":
            walk.state.write(walk.path(arg), EMPTY)


def _operands(call: Call, letters: str = "") -> list[Arg]:
    start, _ = skip_options(call.args, letters)
    return [arg for arg in call.args[start:] if arg[:1] != "-"]


def _in_place(_: Walk, call: Call) -> Iterator[str]:
    """Programs that change files which they are given, always or with an option: `sed -i`, `perl -pi`, `sort -o`."""
    if any(re.fullmatch(_IN_PLACE[call.name], arg) for arg in call.args):
        paths = (_RE.output_option.sub("", arg) for arg in call.args)
        yield from (path for path in paths if path and path[0] not in "-+")


def _patch(walk: Walk, call: Call) -> Iterator[str]:
    """The files that a patch changes are named in it."""
    if call.name == "git" and not {"apply", "am"}.intersection(call.args[:4]):
        if {"checkout", "restore"}.intersection(call.args[:4]):
            yield from (arg for arg in call.args if walk.written_file(arg) is not None)
        return
    yield from _all(walk, "")
    yield from _operands(call, "pdiorFVBbzD")[:1]


def _overwritten(walk: Walk, call: Call) -> Iterator[str]:
    extracts = call.name not in ("tar", "bsdtar", "gtar") or any(_RE.extracts.fullmatch(arg) for arg in call.args[:3])
    if extracts:
        into = next((after for arg, after in itertools.pairwise(call.args) if arg in ("-C", "-d")), "")
        yield from (path for path in _all(walk, into) if not _RE.archive.search(path))


def _all(walk: Walk, folder: str) -> Iterator[str]:
    """The files that the command wrote, below a folder."""
    below = f"{walk.path(folder).rstrip('/')}/" if folder else ""
    yield from [
        path for path in walk.state.files if path.startswith(below) and path[-1:] != "/" and path[:5] != "/dev/"
    ]


def _split(walk: Walk, call: Call) -> Iterator[str]:
    """`split file prefix`."""
    operands = _operands(call, "abClnt")
    prefix = "xx" if call.name == "csplit" else next(iter(operands[0 if "-" in call.args else 1 :][:1]), "x")
    yield from (path for path in walk.state.files if path.rpartition("/")[2].startswith(prefix.rpartition("/")[2]))
    yield from (f"{prefix}{end}" for end in ("aa", "ab", "ac", "00", "01"))


def _expanded(_: Walk, call: Call) -> Iterator[str]:
    """`gunzip x.gz` makes x."""
    if call.name not in ("gzip", "bzip2", "xz", "zstd", "lz4") or any(
        re.match(r"-[a-zA-Z]*d|--(?:de|un)", arg) for arg in call.args
    ):
        yield from (arg.rpartition(".")[0] for arg in _operands(call) if "." in arg)
