"""Run local commands in a sandbox: a read-only system, a writable work tree, a temporary folder of its own, and no network.
Namespaces of its own do it, or those of bubblewrap where only that may make any. Otherwise Landlock, a part of the kernel,
restricts files and TCP (see `landlock.py` for what it leaves open), so an environment under it does not count as isolated.
Without any of these, nothing runs. The Python that runs this stays in sight, and files of the work tree that make programs
elsewhere run something stay as they are."""

import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from importlib.resources import files

from ..types import Unavailable
from .errors import SandboxUnavailable
from .protection import Protection, own_folders
from .shell_host import landlock, proc
from .shell_host.work_tree import TEMPORARY
from .transport.link import Link
from .transport.session import Session, Transport

# What a command must not read in the user's home: keys, and passwords of other programs.
DEFAULT_HIDDEN = tuple(
    """~/.ssh ~/.gnupg ~/.aws ~/.azure ~/.config/gcloud ~/.config/gh ~/.docker ~/.kube ~/.netrc ~/.git-credentials
    ~/.pypirc ~/.npmrc ~/.local/share/keyrings ~/.mozilla ~/.config/google-chrome""".split()
)
# Where a sandbox has its own, or none.
_OWN = ("/tmp", "/var/tmp", "/run", "/dev/shm")
# Files of a work tree that make programs outside of a sandbox run something.
_OF_TOOLS = (".handrail", ".mcp.json", ".envrc", ".vscode", ".idea")
_OF_GIT = ("config", "config.worktree", "hooks", "gitdir", "commondir", "info/attributes")
_HOOKS_PATH = re.compile(r"^\s*hooksPath\s*=\s*\"?([^\"#;\n]+)", re.MULTILINE | re.IGNORECASE)
_MAX_REPOSITORIES = 500
_PACKAGE = __name__.partition(".")[0]
# What an interpreter needs of its prefix, if the prefix itself is a place to be hidden.
_PARTS = ("bin", "lib", "lib64", "pyvenv.cfg")


# unshare, a mount that is made private, mount_setattr, and a /proc, which some containers refuse.
_PROBE = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
if libc.unshare(0x7E020000) or libc.mount(None, b"/", None, 0x44000, None) or os.uname().machine not in ("x86_64", "aarch64"):
    sys.exit(1)
if os.fork() == 0:
    os._exit(bool(libc.syscall(442, -100, b"/", 0, bytes(32), 32) or libc.mount(b"proc", b"/proc", b"proc", 14, None)))
sys.exit(os.wait()[1] != 0)
"""


class Mechanism(Enum):
    NAMESPACES = "namespaces"
    BUBBLEWRAP = "bubblewrap"
    LANDLOCK = "landlock"


@dataclass(frozen=True, slots=True)
class SandboxPolicy:
    """What a sandboxed command may reach. The working directory is writable unless `writable` says otherwise.

    `mechanism` is the best that is there unless one is given.
    """

    writable: tuple[str, ...] | None = None
    network: bool = False
    hidden: tuple[str, ...] = DEFAULT_HIDDEN
    mechanism: Mechanism | None = None

    @property
    def isolates(self) -> bool:
        """Whether commands reach no process of this machine."""
        return self._chosen() is not Mechanism.LANDLOCK

    def check(self) -> Unavailable | None:
        """Why there can be no such sandbox, and how to fix that."""
        chosen, version = self._chosen(), landlock.abi()
        needed = landlock.OLDEST_ABI if self.network else landlock.OLDEST_NETWORK_ABI
        fix = "allow user namespaces, install the package bubblewrap, or turn the sandbox off"
        if chosen is Mechanism.NAMESPACES and not can_make_namespaces():
            return Unavailable("this user can make no namespaces", fix)
        if chosen is Mechanism.BUBBLEWRAP and shutil.which("bwrap") is None:
            return Unavailable("bubblewrap (bwrap) is not installed", fix)
        if chosen is Mechanism.LANDLOCK and version < needed:
            purpose = "" if self.network else " to cut the network"
            return Unavailable(f"the kernel's Landlock is version {version}, and {needed} is needed{purpose}", fix)
        return None

    def connect(self, *, cwd: str, env: dict[str, str], state: bytes | None) -> Link:
        problem = self.check()
        if problem is not None:
            raise SandboxUnavailable(f"a sandbox was requested, and {problem}. Nothing was run without it")
        own = [os.path.realpath(folder) for folder in own_folders()]
        for path in self._writable(cwd):
            if any(path == folder or path.startswith(f"{folder}/") for folder in own):
                why = "belongs to Handrail, and a sandbox does not show that; choose another working directory"
                raise SandboxUnavailable(f"{path} {why}")
        env = Protection().without_variables(env)
        if self._chosen() is Mechanism.LANDLOCK:
            return self._by_landlock(cwd, env, state)
        return self._by_namespaces(cwd, env, state)

    def _chosen(self) -> Mechanism:
        if self.mechanism is not None:
            return self.mechanism
        if can_make_namespaces():
            return Mechanism.NAMESPACES
        has_landlock = landlock.abi() >= landlock.OLDEST_ABI
        return Mechanism.LANDLOCK if shutil.which("bwrap") is None and has_landlock else Mechanism.BUBBLEWRAP

    def _writable(self, cwd: str) -> list[str]:
        return [os.path.realpath(place) for place in ((cwd,) if self.writable is None else self.writable)]

    def _hidden(self) -> list[str]:
        """Including this runtime's own configuration, state and cache, which its commands must not see."""
        return [os.path.realpath(os.path.expanduser(place)) for place in (*self.hidden, *own_folders())]

    def _by_namespaces(self, cwd: str, env: dict[str, str], state: bytes | None) -> Link:
        program = shutil.which("bwrap") or "bwrap"  # by our own PATH, not by that of the commands
        transport = Transport(
            lambda words: [program, *self.arguments(cwd), "--", *words], "the sandbox", sys.executable, env
        )
        if self._chosen() is Mechanism.NAMESPACES:
            spec = {"steps": self._steps(cwd), "network": self.network, "cwd": cwd}
            transport = transport._replace(sandbox=spec)
        return Session(transport, env=env, cwd=cwd, jobs_root="/tmp/handrail", state=state)

    def arguments(self, cwd: str) -> Sequence[str]:
        """For bwrap."""
        # Not --die-with-parent, which means the thread that started it. It ends with its stdin, and everything in it.
        words = "--unshare-all --as-pid-1 --new-session --cap-drop ALL".split()
        words += ["--share-net"] if self.network else []
        return [*words, *(word for step in self._steps(cwd) for word in step), "--chdir", cwd]

    def _steps(self, cwd: str) -> list[list[str]]:
        """What is mounted, in the words of bwrap. A folder comes before what is in it, so that the inner one holds: a work tree
        in a hidden folder is there, and a hidden folder in the work tree is not."""
        steps = {"/": ["--ro-bind", "/", "/"], "/dev": ["--dev", "/dev"], "/proc": ["--proc", "/proc"]} | self._covers()
        if self.network:
            # Name resolution uses files that are often links into /run.
            steps["/run/systemd/resolve"] = ["--ro-bind-try", "/run/systemd/resolve", "/run/systemd/resolve"]
        writable = self._writable(cwd)
        for tree in writable:
            for path in runs_elsewhere(tree):
                # A folder that something is mounted on cannot be renamed, and another put in its place.
                names = os.path.relpath(path, tree).split("/")[:-1]
                between = [os.path.join(tree, *names[: count + 1]) for count in range(len(names))]
                steps |= {above: ["--bind", above, above] for above in between if above not in steps}
                steps[path] = ["--ro-bind", path, path]
        steps |= {path: ["--bind", path, path] for path in writable}
        return [steps[path] for path in sorted(steps, key=lambda path: path.split("/"))]

    def _covers(self) -> dict[str, list[str]]:
        """Hide what is to be hidden, and leave the interpreter where it is, wherever that may be."""
        covers = {place: ["--tmpfs", place] for place in _OWN}
        for path in filter(os.path.exists, (*self._hidden(), *open_sockets(_OWN))):
            covers[path] = ["--tmpfs", path] if os.path.isdir(path) else ["--ro-bind", "/dev/null", path]
        openings = {path: ["--ro-bind", path, path] for path in files_below(covers)}
        links = {path: ["--symlink", target, path] for path, target in links_below(covers).items()}
        return {**covers, **openings, **links}

    def _by_landlock(self, cwd: str, env: dict[str, str], state: bytes | None) -> Link:
        temporary = tempfile.mkdtemp(prefix="handrail-")
        hidden = [*self._hidden(), *TEMPORARY]
        held = {"writable": [*self._writable(cwd), temporary], "readable": files_below(hidden), "hidden": hidden}
        spec = {"landlock": held | {"network": self.network}, "temporary": temporary, "cwd": cwd}
        transport = Transport(lambda words: words, "the sandbox", sandbox=spec)
        env |= {"TMPDIR": temporary, "TMP": temporary, "TEMP": temporary}
        return Session(transport, env=env, cwd=cwd, jobs_root=f"{temporary}/processes", state=state)


@cache
def can_make_namespaces() -> bool:
    """Whether this user can have all that a sandbox needs: some systems allow namespaces, and no mounts in them."""
    return subprocess.run([sys.executable, "-I", "-S", "-c", _PROBE], capture_output=True, check=False).returncode == 0


def runs_elsewhere(tree: str) -> list[str]:
    """Those that exist. A repository without hooks gets an empty folder for them, so that it can be kept as it is."""
    found = [os.path.join(tree, name) for name in _OF_TOOLS]
    pointer = os.path.join(tree, ".git")
    if os.path.isfile(pointer):  # a worktree or a submodule
        found.append(pointer)
    for repository in _repositories(pointer, tree):
        with contextlib.suppress(OSError):
            os.mkdir(os.path.join(repository, "hooks"))
        found += [os.path.join(repository, name) for name in _OF_GIT]
        named = _HOOKS_PATH.findall(_beginning(os.path.join(repository, "config"), 1 << 20))
        hooks = (os.path.normpath(os.path.join(tree, os.path.expanduser(path.strip()))) for path in named)
        found += [path for path in hooks if path.startswith(tree.rstrip("/") + "/")]
    return [path for path in found if os.path.exists(path) and not os.path.islink(path)]


def _repositories(pointer: str, tree: str) -> Iterator[str]:
    """The folder of the work tree's repository, if it lies in the tree, and of its submodules and worktrees."""
    folder = pointer
    if not os.path.isdir(pointer):
        word, _, path = _beginning(pointer, 4096).partition(":")
        folder = os.path.normpath(os.path.join(os.path.dirname(pointer), path.strip())) if word == "gitdir" else ""
    if not folder or not os.path.realpath(folder).startswith(tree.rstrip("/") + "/"):
        return
    yield folder
    count = 0
    for inner in ("modules", "worktrees"):
        for place, folders, names in os.walk(os.path.join(folder, inner)):
            if "HEAD" in names:
                folders[:] = [name for name in folders if name == "modules"]
                yield place
                count += 1
            if count > _MAX_REPOSITORIES:
                return


def _beginning(path: str, size: int) -> str:
    """Of a file; nothing if it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(size)
    except OSError:
        return ""


def open_sockets(outside_of: Collection[str]) -> list[str]:
    """Those that exist now, and lie in none of these folders."""
    words = (line.split(b" ", 7) for line in proc.content("/proc/net/unix").split(b"\n")[1:])
    paths = {os.path.realpath(os.fsdecode(each[7])) for each in words if len(each) > 7 and each[7].startswith(b"/")}
    covered = tuple(os.path.realpath(folder) + "/" for folder in outside_of)
    return sorted(path for path in paths if not path.startswith(covered) and os.path.exists(path))


def files_below(hidden: Collection[str]) -> list[str]:
    """The folders and files of the interpreter and the package that lie in hidden places, outer ones first."""
    spelled = (sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix, str(files(_PACKAGE)))
    folders = [place for path in spelled for place in (os.path.abspath(path), os.path.realpath(path))]
    open_parts = ([f"{each}/{part}" for part in _PARTS] if each in hidden else [each] for each in folders)
    wanted = {part for parts in open_parts for part in parts}
    wanted |= {path for path, target in _way(sys.executable) if target is None}
    found: list[str] = []
    for path in sorted(filter(os.path.exists, wanted), key=len):
        if _is_hidden(path, hidden, found):
            found.append(path)
    return found


def links_below(hidden: Collection[str]) -> dict[str, str]:
    """The links in hidden places that lead to the interpreter, each with what it says."""
    in_sight = files_below(hidden)
    return {path: to for path, to in _way(sys.executable) if to is not None and _is_hidden(path, hidden, in_sight)}


def _is_hidden(path: str, hidden: Collection[str], in_sight: Collection[str]) -> bool:
    """Whether it lies in a hidden place, and not in one inside of that which is in sight."""
    around = [place for place in (*hidden, *in_sight) if path == place or path.startswith(place.rstrip("/") + "/")]
    return bool(around) and max(around, key=len) not in in_sight


def _way(path: str) -> Iterator[tuple[str, str | None]]:
    """Each link on the way to a file with what it says, and at last the file, with None."""
    seen = set()
    while path not in seen:
        seen.add(path)
        if not os.path.islink(path):
            yield path, None
            yield os.path.realpath(path), None
            return
        target = os.readlink(path)
        yield path, target
        path = os.path.normpath(os.path.join(os.path.dirname(path), target))
