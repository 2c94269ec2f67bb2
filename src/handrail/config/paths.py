"""Where the configuration, the state and the cache are: in the `home` that is given, or where this user has them; where the
current project has its own, and plugins are; and how files there are read whole, and replaced so that a crash leaves the old
one or the new."""

import contextlib
import json
import os
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ..base.own_process import import_folders, refuse_agents, started_by_agent
from ..errors import ConfigError

MAX_BYTES = 1024 * 1024
# A writer holds the lock for some milliseconds; one that is stopped must not stop the others for good.
LOCK_TIMEOUT = 30.0


def read_text(path: Path) -> str | None:
    """The file's text, or None when there is no file, or a sandbox of agents' commands hides it."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise ConfigError("is not a regular file", path=str(path))
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        if path.is_symlink():
            raise ConfigError(f"is a link to {path.readlink()}, which does not exist", path=str(path)) from None
        return None
    except OSError as error:
        if isinstance(error, PermissionError) and started_by_agent():  # Landlock cannot make a file invisible
            return None
        raise ConfigError(f"cannot be read: {error.strerror}", path=str(path)) from None
    if len(data) > MAX_BYTES:
        raise ConfigError(f"is larger than {MAX_BYTES:,} bytes; a configuration is not", path=str(path))
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError("is not UTF-8 text; save it as UTF-8", path=str(path), line=line) from None


@contextlib.contextmanager
def locked(path: Path) -> Iterator[Path]:
    """Keep other writers out, of this process and of others. Gives the real file, behind symbolic links. Everything that is
    configured, trusted, pinned or kept as a login is changed under this lock. Raises Denied in a process that an agent's tool
    started: it would change the rules that the agent is held to."""
    refuse_agents(f"change {path.name}")
    import filelock

    target = Path(os.path.realpath(path))
    try:
        make_private(target.parent)
        lock = filelock.FileLock(f"{target}.lock", timeout=LOCK_TIMEOUT, poll_interval=0.005)
        lock.acquire()
    except filelock.Timeout:
        message = f"another writer has held {target}.lock for {LOCK_TIMEOUT:.0f} seconds; end it and try again"
        raise ConfigError(message, path=str(path)) from None
    except OSError as error:
        raise _cannot("be locked for a change", path, error) from None
    try:
        yield target
    finally:
        lock.release()


def make_private(folder: Path) -> None:
    """Make a folder that only this user can enter, and those above it that are missing, whatever the umask."""
    if folder.is_dir():
        return
    make_private(folder.parent)
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)


def write_text(path: Path, text: str) -> None:
    """Replace the file, keeping its mode and owner. The caller holds the lock."""
    from ..base.atomic import replace_file  # loads ctypes, and most starts write nothing

    data = text.encode()
    if len(data) > MAX_BYTES:
        raise ConfigError(f"would be larger than {MAX_BYTES:,} bytes", path=str(path))
    try:
        replace_file(str(path), data, mode=0o600)
    except OSError as error:
        raise _cannot("be written", path, error) from None


def _cannot(what: str, path: Path, error: OSError) -> ConfigError:
    return ConfigError(f"cannot {what}: {error.strerror} ({error.filename})", path=str(path))


_APPLICATION = "handrail"
_ON_LINUX: bool = sys.platform == "linux"
_LINUX_FOLDERS = {"config": "~/.config", "state": "~/.local/state", "cache": "~/.cache"}


def config_path(home: str | os.PathLike[str] = "", *, environ: Mapping[str, str] | None = None) -> Path:
    """The configuration file, which need not exist. `HANDRAIL_HOME` puts it, the state and the cache in one folder."""
    return (_home(home, environ) or _platform_folder("config", environ)) / "config.yaml"


def state_dir(home: str | os.PathLike[str] = "", *, environ: Mapping[str, str] | None = None) -> Path:
    """What must survive a restart: sessions, stored results, approvals. Nothing is created."""
    folder = _home(home, environ)
    return folder / "state" if folder else _platform_folder("state", environ)


def cache_dir(home: str | os.PathLike[str] = "", *, environ: Mapping[str, str] | None = None) -> Path:
    """What may be deleted at any time. Nothing is created."""
    folder = _home(home, environ)
    return folder / "cache" if folder else _platform_folder("cache", environ)


def _home(home: str | os.PathLike[str], environ: Mapping[str, str] | None) -> Path | None:
    home = home or (os.environ if environ is None else environ).get("HANDRAIL_HOME", "")
    # Absolute, so that a path which someone keeps still means the same file after a change of directory.
    return Path(os.path.abspath(os.path.expanduser(home))) if home else None


def _platform_folder(kind: Literal["config", "state", "cache"], environ: Mapping[str, str] | None) -> Path:
    for given in (environ or {}, os.environ):
        folder = Path(given.get(f"XDG_{kind.upper()}_HOME", ""))
        if folder.is_absolute():
            return folder / _APPLICATION
    if _ON_LINUX:  # as platformdirs has it, whose import would be a tenth of a start
        return Path(os.path.expanduser(_LINUX_FOLDERS[kind])) / _APPLICATION
    import platformdirs

    usual: Path = getattr(platformdirs, f"user_{kind}_path")(_APPLICATION, appauthor=False)
    return usual


def remembered(name: str, *, home: str = "") -> dict[str, Any]:
    try:
        known = json.loads((cache_dir(home) / name).read_bytes())
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def remember(name: str, known: dict[str, Any], *, home: str = "") -> None:
    """Only this user can read or write it, whatever the umask: some of it says what is imported at the next start."""
    path = cache_dir(home) / name
    with contextlib.suppress(OSError):
        make_private(path.parent)
        path.parent.chmod(0o700)  # one that an earlier version made is as open as the umask then was
        replace_private(path, json.dumps(known))


def replace_private(path: str | os.PathLike[str], text: str | Iterable[str]) -> None:
    """Replace a file of our own, which only this user can read: all of it or nothing, but not safe from a loss of power."""
    temporary = f"{os.fspath(path)}.new-{os.urandom(6).hex()}"
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with open(os.open(temporary, flags, 0o600), "w", encoding="utf-8") as file:
            file.writelines([text] if isinstance(text, str) else text)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


PROJECT_FOLDER = ".handrail"
MCP_FILE = ".mcp.json"
POLICY_FILE = "config.yaml"


def project_folder(start: Path | None = None) -> Path | None:
    """The `.handrail` folder of the current project: in this directory, or the nearest one above."""
    return next(filter(Path.is_dir, (folder / PROJECT_FOLDER for folder in folders_above(start))), None)


def project_mcp_file(start: Path | None = None) -> Path | None:
    """The file in which the current project lists its MCP servers. It is not read here."""
    return next(filter(Path.is_file, (folder / MCP_FILE for folder in folders_above(start))), None)


def folders_above(start: Path | None = None) -> Iterator[Path]:
    """This directory and those above it, as far as they can be a project's: not the home, not the root."""
    try:
        here = start or Path(os.getcwd())
    except FileNotFoundError:  # the working directory was removed
        return
    for folder in (here, *here.parents):
        if folder in (Path.home(), Path(folder.anchor)):
            return
        yield folder


_CACHE = "entry_points.json"


def entry_points(group: str) -> list[tuple[str, str]]:
    """Names and targets of an entry point group, over everything that is installed. The current folder is not looked at.
    `importlib.metadata` would import forty modules and read every package's files at each start. What a folder of packages
    holds is remembered by its time, and for nearly everyone it is nothing."""
    known = remembered(_CACHE)
    found: dict[str, str] = {}
    changed = False
    for folder in import_folders():
        try:
            stamp = os.stat(folder).st_mtime_ns
        except OSError:
            continue
        key = f"{group} {folder}"
        there = known.get(key)
        if not (isinstance(there, list) and there[0] == stamp):
            there = known[key] = [stamp, _entry_points_in(folder, group)]
            changed = True
        for name, target in dict(there[1]).items():
            found.setdefault(name, target)  # as with modules, the first folder wins
    if changed:
        remember(_CACHE, known)
    return list(found.items())


def _entry_points_in(folder: str, group: str) -> dict[str, str]:
    found: dict[str, str] = {}
    try:
        names = [name for name in os.listdir(folder) if name.endswith((".dist-info", ".egg-info"))]
    except OSError:
        return found
    for name in sorted(names):
        try:
            with open(os.path.join(folder, name, "entry_points.txt"), encoding="utf-8") as file:
                text = file.read()
        except (OSError, UnicodeDecodeError):
            continue
        found.update(_section(text, group))
    return found


def _section(text: str, group: str) -> Iterator[tuple[str, str]]:
    inside = False
    for raw in text.splitlines():
        line = raw.strip()
        if line.startswith("["):
            inside = line == f"[{group}]"
        elif inside and "=" in line and not line.startswith(("#", ";")):
            name, _, target = line.partition("=")
            yield name.strip(), target.partition("[")[0].strip()  # without the extras, which are long obsolete


GROUP, ORIGINAL_GROUP = "handrail", "hermes_agent.plugins"


class Source(Enum):
    USER = "user"
    PIP = "pip"
    PROJECT = "project"


class Found(NamedTuple):
    """A plugin that exists. `place` is its file or folder, or the object that pip's entry point names (`pkg.mod:attr`)."""

    name: str
    source: Source
    place: str


def find_plugins(project: Path | None = None, *, home: str = "") -> Iterator[Found]:
    """Every plugin, in the order in which they are loaded: the first with a name keeps it."""
    yield from _in_folder(config_path(home).parent / "plugins", Source.USER)
    for group in (GROUP, ORIGINAL_GROUP):
        yield from (Found(name, Source.PIP, target) for name, target in sorted(entry_points(group)))
    if (folder := project or project_folder()) is not None:
        yield from _in_folder(folder / "plugins", Source.PROJECT)


def _in_folder(folder: Path, source: Source, *, is_top: bool = True) -> Iterator[Found]:
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return
    for name in names:
        path = folder / name
        if name.startswith((".", "_")):
            continue
        if name.endswith(".py") and path.is_file():
            yield Found(path.stem, source, str(path))
        elif (path / "__init__.py").exists() or (path / "plugin.yaml").exists():
            yield Found(name, source, str(path))
        elif is_top and path.is_dir():  # a category, as Hermes Agent has them
            yield from _in_folder(path, source, is_top=False)
