"""What the kernel protects from local commands: Handrail's folders and program, and sockets through which others would act.
This says what; shell_host/protection.py does it. A sandbox protects more and does not need this."""

import contextlib
import glob
import json
import os
import site
import stat
import sys
import sysconfig
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple, cast

from ..base.own_process import started_by_agent
from ..config.paths import cache_dir, config_path, project_folder, state_dir
from ..egress.secret_sources import secret_files
from ..errors import InvalidArguments
from ..settings.schema import Config
from .private_dirs import shared_parents
from .profiles import MEANINGS, Profile
from .shell_host.protection import CONTAINED, LANDLOCK, NOTHING, OUTER
from .shell_host.wire import Packet
from .shell_host.work_tree import TEMPORARY, contained
from .transport.link import Confinement, fork_servers

_PACKAGE = __name__.partition(".")[0]
# Of the state: the background processes, and what a command is told the path of.
JOBS_FOLDER, _SHOWN = "processes", ("downloads",)
_CACHES = Path(__file__).with_name("writable_caches.txt")
_FRESH_SECONDS = 10.0
_TURN_ON = "turn it on: `handrail config set terminal.protect true`"
_CONTAIN = "contain commands: `handrail config set terminal.profile contained`"
_HELD = "connections to hosts that you have not allowed wait for your answer"
_ENGINES = {"docker": "docker", "podman": "podman", "nerdctl": "containerd"}
# Made in advance, so that one that starts later is covered too.
_MADE_IN_ADVANCE = ("/tmp/tmux-{uid}",)
# The modules that it imports lie beside others of the same names as some of Python's: those come first.
_LAUNCH = f"""
import sys
sys.path.append({os.path.dirname(__file__)!r})
from shell_host import protection
protection.launch(sys.argv[1:])
"""


@cache
def sockets() -> Mapping[str, Mapping[str, list[str]]]:
    """Sockets by the name of a program: their `places`, and the `variables` that point at them. Whoever can talk to one of these
    can run a program, or type, outside of what protects commands. `{run}` is the user's runtime folder."""
    text = Path(__file__).with_name("sockets.json").read_text("utf-8")
    return cast("Mapping[str, Mapping[str, list[str]]]", json.loads(text))


@dataclass(frozen=True, slots=True)
class Protection:
    """What to protect. `home` is Handrail's folder if it is not the usual ones; `package` includes the program itself;
    `allowed` are names of `sockets` that commands may use; without `pids` commands see all processes of the machine. `profile` is
    one of profiles.py; None leaves everything writable that is not Handrail's. `hidden_files` are files that commands find
    empty. With `overlays`, which are as for mounts.isolate, nobody sees what commands change, and they have no network."""

    home: str = ""
    package: bool = True
    allowed: tuple[str, ...] = ()
    pids: bool = True
    profile: Profile | None = Profile.CONTAINED
    hidden_files: tuple[str, ...] = ()
    overlays: tuple[tuple[str, str, str], ...] = ()

    def confinement(self, cwd: str) -> Confinement:
        config, state, cache = own_folders(self.home)
        differs = (state, cache, *_work_tree(cwd, config), *_runtime_folders(), os.path.expanduser("~"))
        lately = int(time.monotonic() / _FRESH_SECONDS)
        covered, sealed = _lately(self, config, cache, lately)
        project = _real(_project_policy(cwd))
        writable: Packet | None = None  # everything is
        if self.overlays:
            writable = {"writable": [*(tree for tree, *_ in self.overlays), *_private()], "quiet": [], "sealed": []}
        elif self.profile in (Profile.CONTAINED, Profile.SEALED):
            outside = caches() if self.profile is Profile.CONTAINED else ()
            writable = contained(cwd, outside, [*sealed, *project, *_real([state])])
        shell = {"read_only": project, "covered": covered, "contained": writable}
        return Confinement(repr((self, config, differs)), lambda: self.policy(cwd), shell)

    def policy(self, cwd: str) -> Packet:
        """Of the fork server of shells that start in `cwd`. Folders that are missing are made: a missing one could be made by a
        command."""
        config, state, cache = own_folders(self.home)
        for folder in (config, state, cache):
            with contextlib.suppress(OSError):  # where we cannot make it, a command cannot either
                os.makedirs(folder, mode=0o700, exist_ok=True)
        outside = _program()[1] if self.package else []
        covered, kept = self._sockets()
        return {
            "isolated": {"overlays": self.overlays, "private": _private()} if self.overlays else None,
            "read_only": self._read_only(config, cache),
            "hidden": _real([state, *self.hidden_files]),
            "shown": _real([os.path.join(state, part) for part in _SHOWN]),
            "writable": _real([*outside, *_work_tree(cwd, config)]),
            "covered": covered,
            "kept": kept,
            "pids": self.pids,
            "contained": self.profile in (Profile.CONTAINED, Profile.SEALED),
            "network": self.profile is not Profile.SEALED and not self.overlays,
            "jobs_root": os.path.join(state, JOBS_FOLDER),
            "is_nested": started_by_agent(),
        }

    def _read_only(self, config: str, cache: str) -> list[str]:
        file, program = config_path(self.home), _program()[0] if self.package else []
        # Also the file that a linked configuration really is.
        return _real([config, cache, *([str(file)] if file.is_symlink() else []), *program])

    def launched(self, program: str, *arguments: str, cwd: str | None = None) -> list[str]:
        """The words that run a program outside of a shell, protected. An engine's own program may talk to its engine."""
        engine = _ENGINES.get(os.path.basename(program))
        # Nobody is asked on behalf of such a program.
        protection = replace(self, profile=None, allowed=(*self.allowed, engine) if engine else self.allowed)
        found = protection.policy(cwd or os.getcwd())
        found["read_only"] += _real(_project_policy(cwd or os.getcwd()))
        policy = json.dumps(found)
        return [sys.executable, "-I", "-S", "-c", _LAUNCH, policy, program, *arguments]

    def without_variables(self, env: Mapping[str, str]) -> dict[str, str]:
        """The variables that do not point at a covered socket."""
        removed = {name for kind in self._refused() for name in sockets()[kind]["variables"]}
        return {name: value for name, value in env.items() if name not in removed}

    def _refused(self) -> list[str]:
        return [name for name in sockets() if name not in self.allowed]

    def _sockets(self) -> tuple[list[str], list[str]]:
        for pattern in _MADE_IN_ADVANCE:
            with contextlib.suppress(OSError):
                os.mkdir(_spelled(pattern)[0], 0o700)
        refused = {path for name in self._refused() for path in _places(name)}
        allowed = {path for name in self.allowed for path in _places(name)}
        covered = {*refused, *_runtime_folders(), *shared_parents()} - allowed
        return _real(covered), _real(allowed)


@cache
def caches() -> list[str]:
    """Whether they exist or not, each from the home folder on."""
    return [line for line in _CACHES.read_text("utf-8").splitlines() if line.startswith("~/")]


def _private() -> list[str]:
    """The folders for temporary files, of which each isolated shell has its own."""
    return _real(path for path in TEMPORARY if os.path.isdir(path))


@lru_cache(maxsize=8)
def _lately(protection: Protection, config: str, cache: str, _: int) -> tuple[list[str], list[str]]:
    """What is covered and what is read-only. Looking for sockets takes longer than all else about a new shell."""
    return protection._sockets()[0], protection._read_only(config, cache)


def check_allowed(names: Collection[str]) -> None:
    for name in names:
        if name not in sockets():
            raise InvalidArguments(f"local: there is no socket {name!r} to allow; known: {', '.join(sockets())}")


def configured(config: Config) -> Protection | None:
    """What the configuration says; None if nothing is to be protected."""
    profile = Profile(config.terminal.profile)
    if not config.terminal.protect or profile is Profile.OPEN:
        return None
    hidden, allowed = tuple(secret_files(config.secrets)), tuple(config.terminal.allow_sockets)
    return Protection(config.home, config.protect.package, allowed, profile=profile, hidden_files=hidden)


class Enforcement(NamedTuple):
    """How commands on this machine are held back, for people: one line, more detail, and what would improve it."""

    is_whole: bool
    line: str
    detail: str
    fix: str = ""


def examine(config: Config) -> Enforcement:
    """Start a protected process, and say what protects it."""
    protection = configured(config)
    if protection is None:
        line = "nothing but the gate keeps commands from Handrail's own files"
        if config.terminal.protect:
            line, fix = f"the profile is open: {MEANINGS[Profile.OPEN]}; {line}", _CONTAIN
        else:
            line, fix = f"terminal.protect is off: {line}", _TURN_ON
        return Enforcement(False, line, line, fix)
    try:
        watched: Packet | None = {} if config.effects.enabled else None
        started = fork_servers.acquire(protection.confinement(os.getcwd()), watched)
    except OSError as error:
        why = error.strerror or str(error)
        return Enforcement(False, f"commands cannot be protected: {why}", f"no protected process started: {why}")
    try:
        found, network = _described(started.report, protection), _network(started.report, protection, config)
        line = f"{found.line}; {network}" if network == _HELD else found.line
        return found._replace(line=line, detail=f"{found.detail}; {network}")
    finally:
        fork_servers.release(started)


def _network(report: Packet, protection: Protection, config: Config) -> str:
    contain, can_hold = config.network.contain, report.get("can_hold")
    if protection.profile is Profile.SEALED:
        return "commands have no network"
    if contain == "off" or (contain == "auto" and protection.profile is not Profile.CONTAINED):
        return "commands connect to any host (network.contain)"
    if not can_hold:
        return "commands connect to any host: the kernel lets nobody hold a connection here"
    return _HELD


def _described(report: Packet, protection: Protection) -> Enforcement:
    by, missing = report["by"], report.get("missing", [])
    program = "" if protection.package else ", but not the program itself (protect.package is off)"
    if by == OUTER:
        line = "the Handrail outside of this one protects its files"
        return Enforcement(True, line, line)
    if by == NOTHING:
        line = "the kernel protects nothing here: only the gate keeps commands from Handrail's own files"
        fix = "allow user namespaces, or use a container"
        return Enforcement(False, line, f"{line} ({report.get('why', '')})", fix)
    if by == LANDLOCK:
        line = f"Landlock protects Handrail's own files{program}; other programs' sockets and terminals are open"
        price = "no new file or folder can be made directly in /, your home and ~/.config"
        return Enforcement(False, line, f"{line}; the price: {price}; sudo gains no rights", "allow user namespaces")
    line = f"the kernel protects Handrail's own files{program}"
    if protection.profile is not None and CONTAINED not in missing:
        sudo = "" if os.geteuid() == 0 else "; `sudo` gains no rights"
        line = f"commands are {protection.profile.value}: {MEANINGS[protection.profile]}{sudo}; {line}"
    allowed = f"; allowed: {', '.join(protection.allowed)}" if protection.allowed else ""
    seen = "commands see the names and arguments of all processes (not their environment or memory)"
    seen = "commands see their own processes only" if report["pids"] else seen
    open_still = f"; not protected: {', '.join(missing)}" if missing else ""
    detail = f"{line}; {seen}; sockets of engines, agents and terminals are covered{allowed}{open_still}"
    return Enforcement(not missing and report["pids"] and protection.package, line, detail)


def launcher(config: Config) -> Callable[[str, Sequence[str], str | None], list[str]]:
    """What makes the words that run a server of tools: a program, its arguments, and the directory that it starts in."""

    def words(program: str, arguments: Sequence[str], cwd: str | None) -> list[str]:
        protection = configured(config)
        return [program, *arguments] if protection is None else protection.launched(program, *arguments, cwd=cwd)

    return words


def own_folders(home: str = "") -> tuple[str, str, str]:
    """The configuration, the state and the cache."""
    return str(config_path(home).parent), str(state_dir(home)), str(cache_dir(home))


def _project_policy(cwd: str) -> list[str]:
    """The rules of the project, which its agents cannot change either."""
    folder = project_folder(Path(cwd))
    found = folder / "config.yaml" if folder is not None else None
    return [str(found)] if found is not None and found.exists() else []


def _work_tree(cwd: str, config: str) -> list[str]:
    """A work tree in the configuration's folder stays writable, unless it is something that Handrail reads."""
    inside = os.path.relpath(os.path.realpath(cwd), os.path.realpath(config)).split("/")
    ours = ("..", ".", "plugins", "skills", "state", "cache", "rl_environments")
    return [] if inside[0] in ours else [os.path.join(config, inside[0])]


@cache
def _program() -> tuple[list[str], list[str]]:
    """What this program is made of, and what lies in it that is not: packages of a Python that we do not import from."""
    site_folders = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    if site.ENABLE_USER_SITE:
        site_folders.append(site.getusersitepackages())
    # The folder on sys.path that has the package: the source folder of an editable install.
    places = [*site_folders, os.path.dirname(str(files(_PACKAGE))), os.path.realpath(sys.executable)]
    is_venv = sys.prefix != sys.base_prefix
    if is_venv:
        places += [os.path.join(sys.prefix, part) for part in ("bin", "pyvenv.cfg")]
    else:
        places += [path for name in ("handrail", "python3") if os.path.isfile(path := f"{sys.prefix}/bin/{name}")]
    library = sysconfig.get_path("stdlib")
    outside = []
    if not library.startswith("/usr/"):  # the system's own is the package manager's
        places.append(library)
        outside = [os.path.join(library, "site-packages")] if is_venv else []
    return places, outside


def names_program(text: str) -> bool:
    """Whether a text names a file of what this program is made of."""
    return any(place in text for place in _program()[0])


def _places(name: str) -> Iterator[str]:
    kind = sockets()[name]
    patterns = [path for place in kind["places"] for path in _spelled(place)]
    for pattern in patterns:
        yield from glob.glob(pattern) if "*" in pattern else [pattern]
    for variable in kind["variables"]:
        value = os.environ.get(variable, "")
        path = value.partition("path=")[2] or value.removeprefix("unix://").removeprefix("unix:")
        path = path.partition(",")[0]
        with contextlib.suppress(OSError):
            is_folder = path.count("/") > 2 and os.path.isdir(path)
            if path.startswith("/") and (is_folder or stat.S_ISSOCK(os.stat(path).st_mode)):
                yield path


def _spelled(pattern: str) -> list[str]:
    place = os.path.expanduser(pattern.replace("{uid}", str(os.getuid())))
    return [place.replace("{run}", folder) for folder in _runtime_folders()] if "{run}" in place else [place]


def _runtime_folders() -> list[str]:
    usual = f"/run/user/{os.getuid()}"
    named = os.environ.get("XDG_RUNTIME_DIR", "")
    return list(dict.fromkeys([usual, *([named] if named.startswith("/") and named.count("/") > 1 else [])]))


def _real(paths: Iterable[str]) -> list[str]:
    """Where they lead, each once. What does not exist is left out later, when shells start."""
    return sorted({os.path.realpath(path) for path in paths} - {"/"})
