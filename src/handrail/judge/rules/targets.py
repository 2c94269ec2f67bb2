"""Which operands a program reads, and which it writes to."""

import re
from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import pairwise

from ..values.data_files import Patterns, read_tables
from ..values.word_values import Arg
from .command import Command

_RE = Patterns(__file__)
Paths = Sequence[Arg]


def written(command: Command) -> Paths:
    """The paths that the command writes to, as far as its arguments say so."""
    line = _WRITES.get(command.name)
    return _finder(line)(command) if line else ()


def read(command: Command) -> Paths:
    """The paths whose content the command reads or copies."""
    line = _READS.get(command.name)
    return _finder(line)(command) if line else ()


def _operands(bounds: Sequence[str], command: Command) -> Paths:
    """Those from the first bound to the second one, if there is one: `0` for all, `1 2` for the second, `-1` for the last."""
    return command.operands[int(bounds[0]) : int(bounds[1]) if len(bounds) > 1 else None]


def _destination(command: Command) -> Paths:
    folder = command.value("-t", "--target-directory")
    if folder is not None:
        return [folder]
    *sources, target = command.operands or [Arg("")]
    if not sources:
        return ()
    if not target.endswith("/") and target not in ("~", ".", ".."):
        return [target]
    return [target, *(Arg(f"{target.rstrip('/')}/{source.rstrip('/').rsplit('/', 1)[-1]}") for source in sources)]


def _sources(command: Command) -> Paths:
    if command.value("-t", "--target-directory") is not None or len(command.operands) < 2:
        return command.operands
    return command.operands[:-1]


def _given(options: Sequence[str], command: Command) -> Paths:
    return command.given(*options)


def values(options: Sequence[str], command: Command) -> Paths:
    """The values of options, also of a program for which no table says that they take one."""
    following = [value for option, value in pairwise(command.args) if option in options and value[:1] != "-"]
    attached = [
        arg.like(arg[2:].removeprefix("=")) for arg in command.args if arg[:2] in options and arg[2:] and arg[1] != "-"
    ]
    return list(dict.fromkeys((*command.given(*options), *following, *attached)))


def _starting(keys: Sequence[str], command: Command) -> Paths:
    """`of=path`."""
    return [arg.like(arg[len(key) :]) for key in keys for arg in command.args if arg.startswith(key) and arg != key]


def _python_unpacks(command: Command) -> Paths:
    """`python -m zipfile -e archive folder`."""
    args = command.args
    unpacks = args[:1] == ["-m"] and args[1:2] in (["zipfile"], ["tarfile"]) and args[2:3] in (["-e"], ["--extract"])
    return args[4:5] if unpacks else ()


def _store_copy(command: Command) -> Paths:
    """`aws s3 cp s3://bucket/x folder`: the last operand, when it is here."""
    copies = not {"cp", "sync", "mv", "rsync", "copy", "copyto", "move", "export", "get"}.isdisjoint(command.operands)
    target = command.operands[-1:]
    return target if copies and target and not _RE.elsewhere.match(target[0]) else ()


def _unpacked_to(command: Command) -> Paths:
    return command.operands[-1:] if len(command.operands) > 1 else ()


def _sed_files(command: Command) -> Paths:
    return command.operands if command.has(("-e", "-f", "--expression", "--file")) else command.operands[1:]


def _sed_in_place(command: Command) -> Paths:
    return _sed_files(command) if command.has(("-i", "--in-place*")) or _clustered_i(command) else ()


def _clustered_i(command: Command) -> bool:
    return any(re.match(r"-[a-hj-zA-Z0-9]*i", word) for word in command.words if not word.startswith("--"))


def _in_place(command: Command) -> Paths:
    return command.operands if command.has(("-i", "--in-place*", "--inplace")) or _clustered_i(command) else ()


def _after_pattern(command: Command) -> Paths:
    if not command.has(("-e", "-f", "--regexp", "--file")):
        return command.operands[1:]
    return [*command.operands, *command.given("-f", "--file")]


def _editor(command: Command) -> Paths:
    scripted = any(_RE.edits.search(arg.lstrip("+-:")) for arg in command.args if not arg.startswith(("/", "~")))
    return command.operands if scripted or command.stdin is not None else ()


def _tar(command: Command) -> Paths:
    folders = command.given("-C", "--directory", "--one-top-level")
    bundle = command.args[0] if command.args and re.fullmatch(r"[a-zA-Z]+", command.args[0]) else ""
    if command.has(("--extract", "--get")) or "x" in bundle or "x" in command.letters:
        if folders:
            return folders
        place = next((index for index, arg in enumerate(command.args[:-1]) if arg == "-C"), -1)
        return [command.args[place + 1]] if place >= 0 else ()
    bundled = command.args[1:2] if "f" in bundle and not set("cru").isdisjoint(bundle) else ()
    return [value for value in (*command.given("-f", "--file"), *bundled) if value != "-"]


def _tar_sources(command: Command) -> Paths:
    creates = command.has(("--create", "--append")) or "c" in command.letters or "r" in command.letters
    old_style = command.args[:1] and not command.args[0].startswith("-") and "c" in command.args[0]
    found = list(command.operands[1:] if old_style else command.operands if creates else ())
    lists = (command.file(path) for path in command.given("-T", "--files-from"))
    found += [Arg(line) for content in lists if content is not None for line in content.text.splitlines()]
    return [*found, *(path.like(f"{folder}/{path}") for folder in command.given("-C", "--directory") for path in found)]


def _socat(command: Command) -> Paths:
    """`socat -u FROM OPEN:path`."""
    addresses = command.operands[-1:] if command.has(("-u",)) else command.operands
    found = [re.match(r"(?i)(?:open|file|gopen|create|creat):([^,]+)", address) for address in addresses]
    return [Arg(match[1]) for match in found if match]


def _curl_reads(command: Command) -> Paths:
    uploads = command.given("-T", "--upload-file", "-K", "--config", "-b", "--cookie")
    sent = command.given("-d", "--data", "--data-binary", "--data-ascii", "--data-urlencode", "-F", "--form", "--json")
    files = [Arg(piece) for value in sent for piece in re.findall(r"[@<]([^;,\s]+)", value)]
    return [*uploads, *files, *(Arg(arg[7:]) for arg in command.operands if arg.startswith("file://"))]


def _remote_sources(command: Command) -> Paths:
    return [operand for operand in command.operands[:-1] if not re.match(r"(\w[\w.-]*@)?[\w.-]+:", operand)]


def _remote_destination(command: Command) -> Paths:
    """The last operand; on another machine only its settings, programs and keys: all else is deployed there every day."""
    target = command.operands[-1:]
    if not target or not (there := _RE.elsewhere.match(target[0])):
        return target
    path = Arg(target[0][there.end() :])
    return [path] if _RE.of_a_system.match(path) else ()


def _copied_in(command: Command) -> Paths:
    """`docker cp x web:/etc/y`, `lxc file push x c1/etc/y`."""
    verb, *rest = command.operands or [Arg("")]
    if verb == "file" and rest[:1] == ["push"]:
        path = Arg("/" + command.operands[-1].partition("/")[2])
        return [path] if _RE.of_a_system.match(path) else ()
    return _remote_destination(command) if verb in ("cp", "transfer", "push", "copy-to") else ()


def _patch(command: Command) -> Paths:
    return command.operands[:1] or command.given("-d", "--directory", "-o", "--output")


@cache
def _finder(line: str) -> Callable[[Command], Paths]:
    """The function here that a line of `targets.txt` names, with the options that it names after it."""
    line, unless, refused = line.partition(" unless ")
    line, _, needed = line.partition(" if ")
    name, *options = line.split()
    function: Callable[..., Paths] = globals()[name if name == "values" else f"_{name}"]
    find = partial(function, options) if options else function
    return partial(_if, needed.split(), refused.split(), find) if needed or unless else find


def _if(needed: Sequence[str], refused: Sequence[str], find: Callable[[Command], Paths], command: Command) -> Paths:
    """What is found, if the command has one of the options (or arguments) after `if`, and none of those after `unless`."""
    has = not needed or command.has(needed) or not set(needed).isdisjoint(command.args)
    return find(command) if has and not (refused and command.has(refused)) else ()


_WRITES, _READS = (
    {program: line for line, programs in read_tables(__file__)[title].items() for program in programs.split()}
    for title in ("writes", "reads")
)
WRITERS = _WRITES.keys()
READERS = _READS.keys()
