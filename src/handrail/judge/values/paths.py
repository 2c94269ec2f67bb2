"""What kind of place a path is, judged from its text alone: the disk is never read.

A path is normalised to one of three forms: absolute, `~` for the user's home and below, or relative to the project.
`classes` returns its classes (a path can have several) and `reach` how far an action there goes. `with_homes` says where the
homes are on the machine that is meant; `/home/*` and the like are homes everywhere. The paths that
matter (system directories, key files, files that run by themselves, devices) are in `paths.txt`.
"""

import functools
import posixpath
import re
from collections.abc import Iterable
from contextvars import ContextVar
from fnmatch import fnmatchcase, translate

from .assessment import Reach
from .data_files import Patterns, read_tables
from .disk import NO_HOMES, Homes
from .word_values import UNKNOWN

Classes = frozenset[str]
_TABLES = read_tables(__file__)
CLASSES = _TABLES["classes"]
"""What each class of paths is."""
_RE = Patterns(__file__)
_LISTS = {name: tuple(paths.split()) for name, paths in _TABLES[""].items()}
_TEMP = ("/tmp", "/var/tmp", "/dev/shm", "/private/tmp")
_SYSTEM_TOP, _SYSTEM_ROOTS, _SETTINGS_ROOTS = (
    frozenset(_LISTS[name]) for name in ("system top", "system roots", "settings roots")
)
_homes: ContextVar[Homes] = ContextVar("homes", default=NO_HOMES)
_TEMP_BELOW = tuple(f"{folder}/" for folder in _TEMP)
_SOMEBODY = "/home/\0"
_MAX_PATH = 4096


def normalise(path: str, cwd: str = ".", project: str = "") -> str:
    """Join to the working directory and fold `.` and `..`. `~` stays as it is; below `project` it becomes relative."""
    if path.startswith("file:/"):
        path = path[5:]
    if path.startswith("/proc/") and (inner := _RE.by_process.match(path)) is not None:
        path = (cwd if inner[1] == "cwd" else "") + (inner[2] or "/")
    if path[:1] not in ("/", "~"):
        path = f"{cwd.rstrip('/') or '/'}/{path}" if path else cwd
    if path[:1] == "~" and path[1:2] in ("", "/"):
        place = posixpath.normpath(_SOMEBODY + path[1:])
        return "~" + place[len(_SOMEBODY) :] if place.startswith(_SOMEBODY) else place
    path = posixpath.normpath(path)
    if path.startswith("//"):
        path = path[1:]
    if project and project not in ("/", "~") and not _RE.home_itself.fullmatch(project):
        if path == project:
            return "."
        if path.startswith(project + "/"):
            return path[len(project) + 1 :]
        if path.startswith("..") and project:
            return posixpath.normpath(f"{project}/{path}")
    return path


def classes(path: str, cwd: str = ".", project: str = "") -> Classes:
    """Every class of one path argument."""
    if len(path) >= _MAX_PATH:
        return frozenset(("unknown", "outside") if path[:1] in ("/", "~") else ("project",))
    return _classes(str(path), cwd, project, _homes.get())


class with_homes:  # noqa: N801 - it is used like a function
    """Judge paths of a machine with these homes: `with with_homes(homes): ...`."""

    __slots__ = ("_homes", "_token")

    def __init__(self, homes: Homes) -> None:
        self._homes = homes

    def __enter__(self) -> None:
        self._token = _homes.set(self._homes)

    def __exit__(self, *_: object) -> None:
        _homes.reset(self._token)


def current_homes() -> Homes:
    """Those that paths are judged with."""
    return _homes.get()


def reach(path: str, cwd: str = ".", project: str = "") -> Reach:
    """How far an action on this path goes."""
    kinds = classes(path, cwd, project)
    if "unknown" in kinds:
        return Reach.UNKNOWN
    if _RE.harmless_device.match(path):
        return Reach.NOWHERE
    if kinds & {"root", "system", "system-root", "device", "kernel", "config"}:
        return Reach.SYSTEM
    if kinds & {"home", "home-root"}:
        return Reach.HOME
    return Reach.OUTSIDE if "outside" in kinds else Reach.TEMP if "temp" in kinds else Reach.PROJECT


def widest(paths: Iterable[str], cwd: str = ".", project: str = "") -> Reach:
    return max((reach(path, cwd, project) for path in paths), default=Reach.NOWHERE)


@functools.lru_cache(8192)
def _classes(path: str, cwd: str, project: str, homes: Homes) -> Classes:
    path = path if path.startswith(UNKNOWN) else normalise(path, cwd, project)
    if path.startswith(UNKNOWN):  # it may be somebody's home
        dot = _RE.dot_files.match(path, 1) or _RE.python_starts.search(path)
        return frozenset(("unknown", *_by_name(path), *(_protected(f"~{path[1:]}", path) if dot else ())))
    as_home, person = _as_home(path, homes)
    found = {*_by_name(path)}
    if person:
        found.add("home")
        if as_home == "~" or (as_home.count("/") == 1 and re.fullmatch(r"~/\.?[*?\[][^/]*", as_home)):
            found.add("home-root")
    if path.startswith("/"):
        found |= _absolute(path, in_home=person) - ({"temp", "temp-root"} if person else set())
    if path == ".." or path.startswith("../"):
        found.add("outside")
    if as_home[0] in "/~":
        found |= _protected(as_home, path)
    elif path in (".", "*", "./*", ".*", "./"):
        found.add("project-root")
    if not found - {"vcs", "hook", "credential-name", "data", "project-root", "own"}:
        found.add("project")
    return frozenset(found)


def _as_home(path: str, homes: Homes) -> tuple[str, bool]:
    """A path in a home, written with `~`, and whether the home is a person's; else the path itself."""
    if path[:1] != "/":
        return path, path[:1] == "~"
    if (known := homes.split(path)) is not None:
        return "~" + known[0], known[1]
    if (home := _RE.home.match(path)) is not None:
        return "~" + (home[1] or ""), True
    if "/." in path and not path.startswith(_TEMP_BELOW) and (dot := _RE.dot_files.search(path)) is not None:
        return "~" + path[dot.start() :], False
    return path, False


def _absolute(path: str, *, in_home: bool) -> set[str]:
    bare = path[:-2] if path.endswith(("/*", "/.")) else path
    if bare in _TEMP:
        return {"temp", "temp-root"}
    if path.startswith(_TEMP_BELOW):
        return {"temp"}
    if path == "/" or _RE.top_glob.fullmatch(path):
        return {"root", "system"}
    top, slash, below = path[1:].partition("/")
    if top.startswith(UNKNOWN):
        return {"unknown", "system"}
    if _RE.wild.search(top) and re.search(r"\w", top):
        tops = [name for name in sorted(_SYSTEM_TOP) if fnmatchcase(name, top)]
        return {kind for name in tops for kind in _absolute(f"/{name}{slash}{below}", in_home=in_home)} or {"outside"}
    if top not in _SYSTEM_TOP:
        return {"outside"}
    found = _special(path, top)
    whole = bare.count("/") == 1 or bare in _SYSTEM_ROOTS
    if whole:
        found |= {"home-root", "home"} if top in ("home", "Users", "root") else {"system-root"}
    return found if in_home else found | {"system"}


def _special(path: str, top: str) -> set[str]:
    """What is special about a place below a directory of the system."""
    found = set()
    if top == "dev" and _RE.block_device.match(path) and not _RE.harmless_device.match(path):
        found.add("device")
    if top in ("dev", "proc") and _RE.terminal.fullmatch(path):
        found.add("terminal")
    if _RE.config.match(path) or _RE.shadowing.fullmatch(path) or path.startswith("/usr/local/share/ca-cert"):
        found.add("config")
    if path.startswith(("/proc/sys", "/sys/", "/selinux/")):
        found.add("kernel")
    if path.startswith(("/var/log", "/var/adm", "/var/account", "/var/mail", "/var/spool/mail", "/var/audit")):
        found.add("log")
    return found


def _protected(as_home: str, path: str) -> set[str]:
    found = set()
    public = as_home.endswith((".pub", "known_hosts", ".ssh/config", "authorized_keys"))
    keys, starts, folder = _LISTS["credentials"], _LISTS["startup"], f"{as_home}/*"
    is_key = could_be(as_home, keys) or folder in keys or (as_home != path and could_be(path, keys))
    if is_key and not public:
        found.add("credential")
    if path.startswith(_LISTS["startup dirs"]) or could_be(as_home, starts) or folder in starts:
        found.add("startup")
    if (as_home[0] == "~" and _RE.shadowing.fullmatch(as_home)) or _RE.python_starts.search(path):
        found.add("startup")
    if could_be(as_home, _LISTS["history"]):
        found.add("history")
    if could_be(as_home, _LISTS["own"]):
        found.add("own")
    if as_home in _SETTINGS_ROOTS:
        found.add("settings-root")
    return found


def _by_name(path: str) -> set[str]:
    name = posixpath.basename(path)
    found = set()
    if "/.git/" in f"/{path}/":
        found.add("vcs")
        if re.search(r"(?:^|/)\.git/(?:hooks|config(?:\.worktree)?$)", path):
            found.add("hook")
    if _compiled(_LISTS["credential names"]).match(name) and not _RE.harmless_names.fullmatch(name):
        found.add("credential-name")
    if _compiled(_LISTS["data names"]).match(name):
        found.add("data")
    if (name == "config.yaml" and path.endswith(".handrail/config.yaml")) or f"{UNKNOWN}/handrail/" in path:
        found.add("own")
    return found


@functools.cache
def _compiled(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(translate(pattern) for pattern in patterns))


def could_be(path: str, patterns: tuple[str, ...]) -> bool:
    """Whether a path, which may have wildcards or unknown parts itself, can be one of the protected ones.

    A wild last part counts only when it says something: `/etc/shado?` can be `/etc/shadow`, `/etc/*` is just a listing.
    """
    if UNKNOWN in path:
        path = path.replace(UNKNOWN, "*")
    if _compiled(patterns).match(path):
        return True
    if path.endswith("/*") and path[:-2] in patterns:
        return True
    if not _RE.wild.search(path) or len(re.sub(r"\[[^]]*\]|[*?]", "", posixpath.basename(path))) < 2:
        return False
    parts = path.split("/")
    anything = "*" if "*" not in parts else ""
    alike = [pattern.split("/") for pattern in patterns if pattern.count("/") == len(parts) - 1]
    pairs = (zip(parts, others, strict=True) for others in alike)
    return any(all(other == anything or _overlap(one, other) for one, other in pair) for pair in pairs)


def _overlap(one: str, other: str) -> bool:
    """Whether some name fits both patterns. One that starts with a wildcard says too little for that: `*.json`
    is not taken for every file of keys."""
    if one == other:
        return True
    if one[:1] in "*?[" or other[:1] in "*?[":
        return fnmatchcase(other.replace("*", "x"), one)
    return _meet(re.sub(r"\[[^]]*\]", "?", one), re.sub(r"\[[^]]*\]", "?", other))


def _meet(one: str, other: str) -> bool:
    """The same, row by row: which prefixes of `other` can be matched by the prefixes of `one`."""
    row = [True] + [False] * len(other)
    for place, sign in enumerate(other):
        row[place + 1] = row[place] and sign == "*"
    for letter in one:
        last, row = row, [row[0] and letter == "*"]
        for place, sign in enumerate(other):
            if "*" in (letter, sign):
                meets = last[place] or last[place + 1] or row[place]
            else:
                meets = last[place] and (letter == sign or "?" in (letter, sign))
            row.append(meets)
    return row[-1]
