"""The files that a program writes: those whose content matters to later commands, and those that its options name."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence

from ..programs.wrapper_options import skip_options
from ..values.data_files import Words
from ..values.word_values import UNKNOWN, Arg, OtherName, Taint, unknown
from .files_changed import changed_files
from .script_files import entry
from .walk import Call, Walk

_WORDS = Words(__file__)
_ELSEWHERE = re.compile(r"\w+://|(?:[\w.-]+@)?[\w.-]+:(?!\\)")
_RECURSIVE = re.compile(r"-\w*[ar]\w*|--(?:archive|recursive)|sync")
_MAX_COPIES = 32
_OUTPUT_PREFIXES = tuple(f"{option}=" for option in sorted(_WORDS.output_options) if option.startswith("--"))


def files_made(walk: Walk, call: Call) -> None:
    """Remember the files that a program makes, where their content matters to later commands: they may run them."""
    changed_files(walk, call)
    maker = _MAKERS.get(call.name)
    if maker is not None and call.args:
        maker(walk, call)


def output_files(call: Call) -> Sequence[Arg]:
    """Absolute paths given with `-o`, `--output` and the like."""
    return () if len(call.args) == 0 or call.name in _WORDS.other_o else list(_absolute_outputs(call))


def _absolute_outputs(call: Call) -> Iterator[Arg]:
    before = ""
    for arg in call.args:
        if before in _WORDS.output_options and arg[:1] in ("/", "~"):
            yield arg
        elif arg.startswith(_OUTPUT_PREFIXES) and (path := arg.partition("=")[2])[:1] in ("/", "~"):
            yield arg.like(path)
        before = arg


def _fetched(walk: Walk, target: str) -> None:
    if target and target != "-":
        walk.state.write(walk.path(target), unknown([Taint.NETWORK]))


def _fetched_below(walk: Walk, directory: str) -> None:
    """Anything in this directory may have come from the network."""
    walk.state.write(f"{walk.path(directory)}/", unknown([Taint.NETWORK]))


def _curl(walk: Walk, call: Call) -> None:
    for target in _curl_targets(call.args):
        _fetched(walk, target)


def _wget(walk: Walk, call: Call) -> None:
    for target in _wget_targets(call.args):
        _fetched(walk, target)


def _fetcher(walk: Walk, call: Call) -> None:
    """Downloaders that choose the file name themselves unless one is given."""
    start, options = skip_options(call.args, "od", "out dir output")
    named = [value for option, value in options if option in ("-o", "--out", "--output") and value]
    for target in named or [arg.like(_last_part(arg)) for arg in call.args[start:] if "/" in arg]:
        _fetched(walk, target)


def _downloaded(walk: Walk, call: Call) -> None:
    """`az storage blob download -f file`, `gh release download -O file`."""
    if not {"download", "download-batch", "get"}.isdisjoint(call.args):
        for arg, following in itertools.pairwise(call.args):
            if arg in ("-f", "--file", "-d", "--destination", "-O", "--output"):
                _fetched(walk, following)
    _cloned(walk, call)


def _tftp(walk: Walk, call: Call) -> None:
    """`tftp -g -r name host`, `tftp host -c get name`."""
    for arg, following in itertools.pairwise(call.args):
        if arg in ("-r", "-l", "get"):
            _fetched(walk, following)


def _remote_copy(walk: Walk, call: Call) -> None:
    """`scp host:script .`, `aws s3 cp s3://bucket/script .`: the last operand gets what another machine has."""
    operands = [arg for arg in call.args if arg[:1] != "-"]
    if len(operands) > 1 and _ELSEWHERE.match(operands[-2]) and not _ELSEWHERE.match(operands[-1]):
        _fetched(walk, operands[-1])
        _fetched(walk, f"{operands[-1]}/{_last_part(operands[-2])}")
        if operands[-2].endswith("/") or any(_RECURSIVE.fullmatch(arg) for arg in call.args):
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
            walk.on_write(target, ">", unknown([Taint.ENDLESS]))
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
    if operands and (_ELSEWHERE.match(operands[0]) or call.name != "git"):
        _fetched_below(walk, operands[1] if len(operands) > 1 else _last_part(operands[0]).removesuffix(".git"))


def _unpacked(walk: Walk, call: Call) -> None:
    """An archive that came from the network, and what was in it."""
    contents = [call.stdin, *(walk.known_file(arg) for arg in call.args)]
    if not any(content is not None and Taint.NETWORK in content.taints for content in contents):
        return
    into = next((after for arg, after in itertools.pairwise(call.args) if arg in ("-C", "--directory", "-d")), ".")
    _fetched_below(walk, into)


def _curl_targets(arguments: Sequence[Arg]) -> list[Arg]:
    found: list[Arg] = []
    urls = [arg for arg in arguments if "/" in arg and arg[:1] != "-"]
    for index, arg in enumerate(arguments):
        if re.fullmatch(r"-[a-zA-Z#]*o|--output", arg) and index + 1 < len(arguments):
            found.append(arguments[index + 1])
        elif arg.startswith("--output="):
            found.append(arg.like(arg.partition("=")[2]))
        elif re.fullmatch(r"-o.+", arg):
            found.append(arg.like(arg[2:]))
        elif re.fullmatch(r"-[a-zA-Z#]*O[a-zA-Z]*|--remote-name|--remote-name-all", arg):
            found += [url.like(_last_part(url)) for url in urls]
    return found


def _wget_targets(arguments: Sequence[Arg]) -> list[Arg]:
    for index, arg in enumerate(arguments):
        if re.fullmatch(r"-[a-zA-Z]*O|--output-document", arg) and index + 1 < len(arguments):
            return [arguments[index + 1]]
        if arg.startswith(("--output-document=", "-O")) and len(arg) > 2:
            return [arg.like(arg.partition("=")[2] if "=" in arg[:20] else arg[2:])]
    directory = next((following for arg, following in itertools.pairwise(arguments) if arg == "-P"), None)
    prefix = f"{directory}/" if directory else ""
    return [
        arg.like(prefix + _last_part(arg))
        for arg in arguments
        if arg[:1] != "-" and "/" in arg and arg is not directory
    ]


def _last_part(url: str) -> str:
    return re.split(r"[?#]", url, maxsplit=1)[0].rstrip("/").rsplit("/", 1)[-1].rsplit(":", 1)[-1]


def _copied_by_dd(walk: Walk, call: Call) -> None:
    target = next((arg.like(arg[3:]) for arg in call.args if arg.startswith("of=")), None)
    source = next((arg.like(arg[3:]) for arg in call.args if arg.startswith("if=")), None)
    content = call.stdin if source is None else walk.known_file(source)
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


_MAKERS: dict[str, Callable[[Walk, Call], None]] = {
    "curl": _curl,
    "wget": _wget,
    **dict.fromkeys(("aria2c", "axel", "fetch", "http", "xh"), _fetcher),
    "tftp": _tftp,
    **dict.fromkeys("scp sftp rsync rclone aws gsutil gcloud s3cmd s5cmd mc b2 azcopy".split(), _remote_copy),
    **dict.fromkeys(("cp", "mv", "ln", "install", "gcp"), _copied),
    "dd": _copied_by_dd,
    "logsave": _logged,
    **dict.fromkeys(("git", "hg", "svn"), _cloned),
    **dict.fromkeys(("gh", "glab", "az", "oci"), _downloaded),
    **dict.fromkeys(("tar", "bsdtar", "unzip", "7z", "cpio", "bsdcpio", "gtar"), _unpacked),
}
