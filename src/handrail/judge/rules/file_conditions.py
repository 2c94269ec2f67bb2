"""Conditions on files: what is deleted, emptied or overwritten, and what permissions are given."""

import re
from collections.abc import Sequence
from itertools import pairwise

from ..values.data_files import Patterns, Words, read_tables
from ..values.taints import Taint
from ..values.word_values import UNKNOWN, Arg
from . import targets
from .command import Command

_WORDS = Words(__file__)
_RE = Patterns(__file__)
_TABLES = read_tables(__file__)
_PROTECTED = frozenset(("config", "startup", "credential", "history", "log", "device", *_WORDS.wiped))
_TOO_MUCH = 50 * 1024**3


def _find_roots(command: Command) -> Sequence[Arg]:
    """Where find starts: the operands before its first test."""
    roots: list[Arg] = []
    for arg in command.args:
        if arg in ("-H", "-L", "-P") or re.fullmatch(r"-O\d", arg):
            continue
        if arg[:1] in ("-", "(", "!", ")"):
            break
        roots.append(arg)
    return roots or [Arg(".")]


def find_wipes(command: Command, _: str) -> bool:
    """Deletes everything below a root, with no test that selects."""
    if "-delete" not in command.words or not command.words.isdisjoint(_WORDS.narrowing):
        return False
    return command.any_class(_WORDS.wiped, _find_roots(command))


def fd_deletes(command: Command, _: str) -> bool:
    pairs = pairwise(command.args)
    started = (following for arg, following in pairs if arg in ("-x", "-X", "--exec", "--exec-batch"))
    return any(name.rsplit("/", 1)[-1] in ("rm", "unlink", "shred", "srm", "rmdir", "trash") for name in started)


def fd_wipes(command: Command, _: str) -> bool:
    return fd_deletes(command, "") and command.any_class(_WORDS.wiped, command.operands[1:])


def moves_protected(command: Command, _: str) -> bool:
    sources = command.operands if command.value("-t", "--target-directory") else command.operands[:-1]
    return command.any_class(_PROTECTED, sources)


def moves_away(command: Command, _: str) -> bool:
    """Moves what lies outside the project; a single file may go anywhere but where temporary files are deleted."""
    folder = command.value("-t", "--target-directory")
    target = folder if folder is not None else command.operands[-1] if command.operands else Arg("")
    sources = command.operands if folder is not None else command.operands[:-1]
    far = [source for source in sources if not command.classes(source).isdisjoint(_WORDS.not_ours)]
    if not far:
        listed = any(source == UNKNOWN and Taint.WIDE in source.taints for source in sources)
        return listed and not command.classes(target).isdisjoint(_WORDS.far_from_lists)
    if len(sources) == 1 and not sources[0].glob and "*" not in sources[0]:
        named = "." in sources[0].rpartition("/")[2][1:]
        return not named or not command.classes(target).isdisjoint(("temp", "unknown"))
    return True


def empties_many(command: Command, _: str) -> bool:
    """Nothing is written over files that a pattern stands for, or that lie outside the project."""
    if command.stdin is None or command.stdin.text.strip() or command.has(("-a", "--append")):
        return False
    written = [path for path in targets.written(command) if path[:5] != "/dev/"]
    return any("*" in path for path in written) or command.any_class(_WORDS.far, written)


def globs_far(command: Command, parameter: str) -> bool:
    """A pattern for files outside the project, or of the class that is named; there also all that find finds unselected."""
    wanted = frozenset((parameter,)) if parameter else _WORDS.far - {"unknown"}
    given = (*command.operands, *targets.read(command))
    all_found = [path for path in given if parameter and Taint.WIDE in path.taints and path.endswith((UNKNOWN, "/*"))]
    globs = [path for path in given if "*" in path and not (parameter and Taint.WIDE in path.taints)]
    return command.any_class(wanted, (*all_found, *globs))


def fills_disk(command: Command, _: str) -> bool:
    """Writes without end, or more than a disk mostly has left."""
    name = command.name
    if name == "dd":
        return _dd_fills(command)
    if name in _WORDS.make_files:
        sizes = (size for arg in command.args for size in (arg.rpartition("=")[2], arg[2:]))
        return (name != "openssl" or "rand" in command.args) and any(_bytes(size) >= _TOO_MUCH for size in sizes)
    endless = command.stdin is not None and Taint.ENDLESS in command.stdin.taints
    if name in _WORDS.hold_all:
        return endless or not _WORDS.endless_files.isdisjoint(command.operands)
    return endless and any(map(_is_file, targets.written(command)))


def _dd_fills(command: Command) -> bool:
    settings = dict(arg.split("=", 1) for arg in command.args if "=" in arg)
    endless_input = command.stdin is not None and Taint.ENDLESS in command.stdin.taints
    endless = settings["if"] in _WORDS.endless_files if "if" in settings else endless_input
    if not endless or not _is_file(settings.get("of", "/dev/null")):
        return False
    if "count" not in settings:
        return True
    count, block = settings["count"], max(_bytes(settings.get("bs", settings.get("obs", "512"))), 1)
    return _bytes(count) * (1 if count.endswith("B") and "iflag" in settings else block) >= _TOO_MUCH


def _is_file(path: str) -> bool:
    return not path.startswith("/dev/") or path.startswith("/dev/shm/")


def _bytes(text: str) -> int:
    match = re.fullmatch(r"(?i)(\d{1,20})([kmgtpe]?)(?:i?b)?", text)
    return int(match[1]) * 1024 ** " kmgtpe".index(match[2].lower() or " ") if match else 0


def wide_operands(command: Command, _: str) -> bool:
    """Operands that come from a listing."""
    return any(Taint.WIDE in operand.taints for operand in command.operands)


def globs_outside(command: Command, _: str) -> bool:
    return command.any_class(_WORDS.far, [operand for operand in command.operands if operand.glob or "*" in operand])


def empties(command: Command, _: str) -> bool:
    """Cuts to nothing, or shrinks."""
    size = command.value("-s", "--size")
    if command.value("-r", "--reference") == "/dev/null":
        return True
    return size is not None and (size.lstrip("<%/") in ("0", "0K", "0M", "") or size[:1] == "-")


def overwrites_data(command: Command, _: str) -> bool:
    """Writes nothing, zeros or noise over a file that is named like a database, or over everything that was found."""
    nothing = {"/dev/null", "/dev/zero", "/dev/urandom", "/dev/random"}
    if command.name == "tee" or nothing.isdisjoint(targets.read(command)):
        return False
    written = targets.written(command)
    return any(Taint.WIDE in path.taints for path in written) or command.any_class({"data", "home"}, written)


def overwrites_input(command: Command, _: str) -> bool:
    """`openssl enc -in a -out a`: what it reads is gone once it writes."""
    return not {*command.operands, *targets.read(command)}.isdisjoint(targets.written(command))


def empties_in_place(command: Command, _: str) -> bool:
    """`sed -i d`, `perl -i -ne ''`, `awk -i inplace '{}'`: nothing of the files is left."""
    if command.name == "sed":
        scripts = command.given("-e", "--expression") or command.operands[:1]
        return any(_RE.deletes_all.fullmatch(script) for script in scripts) and bool(targets.written(command))
    if command.name == "awk":
        return "inplace" in command.args and any(re.fullmatch(r"\s*\{\s*\}\s*", arg) for arg in command.args)
    nothing = re.compile(r"\s*(?:\$_\s*=\s*(?:\"\"|''|undef);?)?\s*")
    return "i" in command.letters and any(map(nothing.fullmatch, command.args))


def unpacks(command: Command, parameter: str) -> bool:
    """tar, cpio and unzip as they unpack. With `here` into a folder of the system; with a letter, as in `tar xPf`."""
    bundle = command.args[0] if command.args and command.args[0].isalpha() else ""
    if command.name == "unzip":
        found = not command.has(("-l", "-t", "-v", "-Z", "-p"))
    elif command.name == "cpio":
        found = command.has(("-i", "--extract")) or "i" in command.letters
    else:
        found = command.has(("-x", "--extract", "--get")) or "x" in command.letters or "x" in bundle
    if parameter == "here":
        into = command.value("-C", "-d", "-D", "--directory")
        return found and into is None and command.any_class({"root", "system-root", "config"}, [Arg(command.cwd)])
    return found and parameter in bundle


def spreads(command: Command, _: str) -> bool:
    """What is in a folder goes into a home itself or into a folder of settings, over whatever has the same name there."""
    sources, target = targets.read(command), targets.written(command)[:1]
    ends = ("/.", "/*", "/") if command.name == "rsync" else ("/.", "/*")
    return command.any_class({"home-root", "settings-root"}, target) and any(
        source.endswith(ends) or source.glob or source in (".", "*") for source in sources
    )


def mounts_over(command: Command, parameter: str) -> bool:
    """Something is mounted over a system directory, a home, or a path of the class that is named."""
    if len(command.operands) < 2 or command.operands[-1].startswith("/boot"):
        return False
    wanted = {"root", "config", "home-root", "settings-root", "own", parameter}
    return command.any_class(wanted, command.operands[-1:])


def operand(command: Command, parameter: str) -> bool:
    """An operand that is written as a pattern of the file beside this one says."""
    return any(re.fullmatch(_TABLES["operands"][parameter], operand) for operand in command.operands)


def last_device(command: Command, _: str) -> bool:
    return command.any_class({"device"}, [*command.operands[1:], *command.given("-o", "--output", "-O")])


def shrinks(command: Command, _: str) -> bool:
    sizes = command.given("-L", "-l", "--size", "--extents")
    written = [Arg(arg) for arg in command.args if re.fullmatch(r"-\d[\w%]*", arg)]
    return bool(written) or any(not size.startswith("+") for size in sizes) or command.has(("-f", "--force"))


def mode(command: Command, parameter: str) -> bool:
    """The mode that chmod is given."""
    found = (arg for arg in command.args if _RE.mode.fullmatch(arg) and not _RE.option_cluster.fullmatch(arg))
    return re.search(_TABLES["modes"][parameter], next(found, "-")) is not None


def mode_option(command: Command, parameter: str) -> bool:
    value = command.value("-m", "--mode")
    return value is not None and re.search(_TABLES["modes"][parameter], value) is not None


def acl_open(command: Command, _: str) -> bool:
    """An access list that lets others write, or opens something protected."""
    for_others = filter(re.compile(r"(?:^|,)(?:d:)?o").search, command.args)
    opens = any(map(re.compile(r"(?:^|,|:)(?:o|other|others)?:?:?[r-]?w").search, for_others))
    return opens or command.any_class({"config", "credential", "startup", "home-root", "system-root"}, command.operands)


def writes_new_key(command: Command, _: str) -> bool:
    """Makes a key pair, which asks by itself before it overwrites one; unless its question is answered already."""
    return command.name == "ssh-keygen" and command.stdin is None
