"""What the judge may know about the machine where a command will run: its files, its shell, and the homes of its users.

The caller hands it in. The homes of this machine are looked up when the first command is judged.
"""

import functools
import os
import posixpath
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

MAX_FILES = 160
MAX_BYTES = 1_000_000
MAX_SCRIPT = 200_000
_MAX_LOOKUPS = 1_500
_MAX_CODE = {False: 100_000, True: 200_000}
_MAX_PARENTS = 12
INSTALLED = tuple("/usr/ /bin/ /sbin/ /lib/ /lib64/ /opt/ /nix/ /snap/ /etc/alternatives/".split())
_OF_A_PROCESS = ("/dev/", "/proc/")
"""What is there depends on who looks: the judge must not take its own input or environment for the command's."""
_PASSWD = "/etc/passwd"
_FIRST_PERSON = 1000
_NOBODY = 65534
# Entries of passwd that say "no home", and directories that are far more than one.
_NO_HOMES = frozenset(
    "/ /bin /sbin /dev /proc /sys /usr /usr/bin /usr/sbin /usr/games /etc /var /var/lib /var/run /run /tmp /var/tmp /opt /srv "
    "/home /root /mnt /media /nonexistent /nonexistant /var/empty /var/mail /var/spool /var/cache /var/backups /boot".split()
)


class DiskEntry(NamedTuple):
    """What is at a path, with links followed."""

    path: str
    """Where it really is: the target of a link."""
    is_dir: bool
    size: int
    is_new: bool = False
    """It was made or changed since the session began, and is not what the repository has."""


class Disk(Protocol):
    """Read-only access to files. Paths are absolute, or start with `~/`. Nothing here may raise."""

    def find(self, path: str) -> DiskEntry | None:
        """None when there is nothing, or when it cannot be looked up."""

    def read(self, path: str, max_bytes: int) -> bytes | None:
        """The start of a regular file; None when it cannot be read."""

    def names(self, path: str) -> Sequence[str]:
        """The names in a folder; empty when it cannot be read."""


@dataclass(slots=True)
class ShellMemory:
    """What earlier commands left in a shell that lives on. `assess` reads it, and adds what the command would leave."""

    aliases: dict[str, str] = field(default_factory=dict)
    path: str = ""
    """PATH, where a command has set it; what is unknown in it stays so."""
    variables: dict[str, str] = field(default_factory=dict)
    """Exported variables that say where programs find code: PYTHONPATH and its like."""


class Source(NamedTuple):
    """A file that would be run."""

    path: str
    text: str
    is_new: bool
    is_whole: bool = True
    """False when only its start is here: it is too long, or the budget is used up."""
    is_binary: bool = False


class Sources:
    """One judgement's view of the disk, or of no disk. What is over the budget is not read; `is_whole` says so."""

    def __init__(self, disk: Disk | None) -> None:
        self._disk = disk
        self._files = MAX_FILES
        self._bytes = MAX_BYTES
        self._lookups = _MAX_LOOKUPS
        self._code = 0
        self._roots: dict[str, str] = {}
        self.followed: set[object] = set()
        """What was followed already: a target, a script with its arguments."""

    def entry(self, path: str) -> DiskEntry | None:
        self._lookups -= 1
        if self._disk is None or self._lookups < 0 or path.startswith(_OF_A_PROCESS):
            return None
        return self._disk.find(path)

    def names(self, path: str) -> list[str]:
        self._lookups -= 1
        return sorted(self._disk.names(path)) if self._disk is not None and self._lookups >= 0 else []

    def read(self, path: str, *, max_bytes: int = MAX_SCRIPT) -> Source | None:
        """A file that is there; None for what is no file, and for programs that were installed long ago."""
        entry = self.entry(path)
        if entry is None or entry.is_dir or (entry.path.startswith(INSTALLED) and not entry.is_new):
            return None
        if self._files <= 0 or self._bytes <= 0:
            return Source(path, "", entry.is_new, is_whole=False)
        self._files -= 1
        data = self._disk.read(entry.path, max_bytes) if self._disk is not None else None
        if data is None:
            return Source(path, "", entry.is_new, is_whole=False)
        self._bytes -= len(data)
        if b"\0" in data[:4096]:
            return Source(entry.path, "", entry.is_new, is_binary=True)
        return Source(path, data.decode("utf-8", "replace"), entry.is_new, is_whole=entry.size <= max_bytes)

    def may_judge(self, size: int, *, is_new: bool) -> bool:
        """Whether there is budget left for judging that much code. The first program is judged in any case."""
        is_first = self._code == 0
        self._code += size
        return is_first or self._code <= _MAX_CODE[is_new]

    def start(self, path: str, max_bytes: int) -> bytes:
        """The first bytes of any file, whatever it is."""
        return (self._disk.read(path, max_bytes) or b"") if self._disk is not None else b""

    def root(self, cwd: str, project: str) -> str:
        """The work tree around a directory: the nearest one with a repository, else the project."""
        if cwd not in self._roots:
            self._roots[cwd] = self._repository(cwd) or project or cwd
        return self._roots[cwd]

    def _repository(self, cwd: str) -> str:
        place = cwd
        for _ in range(_MAX_PARENTS):
            if place in ("/", "", "~", "."):
                return ""
            if self.entry(f"{place}/.git") is not None:
                return place
            place = posixpath.dirname(place)
        return ""


def absolute(path: str, cwd: str) -> str:
    """The path as the disk takes it; empty when the directory is not known."""
    if path.startswith(("/proc/self/cwd/", "/proc/thread-self/cwd/")):
        path = path.partition("/cwd/")[2]
    if path[:1] == "/" or path[:2] in ("~", "~/"):
        return posixpath.normpath(path)
    return posixpath.normpath(f"{cwd}/{path}") if cwd[:1] in ("/", "~") else ""


@dataclass(frozen=True, eq=False, slots=True)
class Homes:
    """`people`: whole homes, which must not be lost. `services`: homes of service accounts, where keys and start-up files
    are protected; the rest is the data of a service."""

    people: tuple[str, ...] = ()
    services: tuple[str, ...] = ()

    def split(self, path: str) -> tuple[str, bool] | None:
        """What follows the home that an absolute path lies in, and whether it is a person's; None outside of homes."""
        for home in (*self.people, *self.services):
            if path.startswith(home) and path[len(home) : len(home) + 1] in ("", "/"):
                return path[len(home) :], home in self.people
        return None


NO_HOMES = Homes()


def make_homes(people: Iterable[str], services: Iterable[str] = ()) -> Homes:
    """From absolute paths; those that cannot be one user's home are left out."""
    own = _usable(people)
    return Homes(own, tuple(home for home in _usable(services) if home not in own))


def local_homes() -> Homes:
    """Those of this machine: `$HOME`, this user's entry in passwd, and all others there."""
    encoded: dict[bytes, bytes] = os.environ._data  # type: ignore[attr-defined]  # decoding takes longer than the rest
    return _local_homes(encoded.get(b"HOME", b""))


@functools.lru_cache(16)
def _local_homes(encoded: bytes) -> Homes:
    home = os.fsdecode(encoded)
    entries = list(_entries())
    own = [place for uid, place in entries if uid == os.getuid()]
    people = [home, *own, *(place for uid, place in entries if _FIRST_PERSON <= uid < _NOBODY)]
    return make_homes(_and_real(people), _and_real(place for uid, place in entries if 0 < uid < _FIRST_PERSON))


def _entries() -> Iterator[tuple[int, str]]:
    try:
        with open(_PASSWD, encoding="utf-8", errors="replace") as file:
            fields = [line.rstrip("\n").split(":") for line in file]
    except OSError:
        return
    for entry in fields:
        if len(entry) > 5 and entry[2].isdigit():
            yield int(entry[2]), entry[5]


def _and_real(places: Iterable[str]) -> Iterator[str]:
    for place in places:
        if place.startswith("/"):
            yield place
            yield os.path.realpath(place)


def _usable(places: Iterable[str]) -> tuple[str, ...]:
    named = (place.rstrip("/") for place in places if place.startswith("/"))
    kept = dict.fromkeys(place for place in named if place and place not in _NO_HOMES)
    return tuple(sorted(kept, key=len, reverse=True))
