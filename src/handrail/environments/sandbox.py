"""Run local commands in a sandbox: a read-only system, a writable work tree, a temporary folder of its own, and no network.

Bubblewrap does it where it is installed. Otherwise Landlock, a part of the kernel, restricts files and TCP (see `landlock.py` for
what it leaves open), so an environment under it does not count as isolated. Without either, nothing runs.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from ..types import Unavailable
from . import interpreter
from .errors import SandboxUnavailable
from .open_sockets import open_sockets
from .protection import Protection, own_folders
from .shell_host import landlock
from .transport.link import Link
from .transport.session import Session, Transport
from .work_tree import runs_elsewhere

# What a command must not read in the user's home: keys, and passwords of other programs.
DEFAULT_HIDDEN = (
    "~/.ssh",
    "~/.gnupg",
    "~/.aws",
    "~/.azure",
    "~/.config/gcloud",
    "~/.config/gh",
    "~/.docker",
    "~/.kube",
    "~/.netrc",
    "~/.git-credentials",
    "~/.pypirc",
    "~/.npmrc",
    "~/.local/share/keyrings",
    "~/.mozilla",
    "~/.config/google-chrome",
)
# Where a sandbox has its own, or none.
_OWN = ("/tmp", "/var/tmp", "/run", "/dev/shm")
_SHARED = ("/tmp", "/var/tmp", "/dev/shm")


class Mechanism(Enum):
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
        return self._chosen() is Mechanism.BUBBLEWRAP

    def check(self) -> Unavailable | None:
        """Why there can be no such sandbox, and how to fix that."""
        chosen, version = self._chosen(), landlock.abi()
        needed = landlock.OLDEST_ABI if self.network else landlock.OLDEST_NETWORK_ABI
        fix = "install the package bubblewrap, or turn the sandbox off"
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
        self._check_work_tree(cwd)
        env = Protection().without_variables(env)
        if self._chosen() is Mechanism.LANDLOCK:
            return self._by_landlock(cwd, env, state)
        return self._by_bubblewrap(cwd, env, state)

    def _chosen(self) -> Mechanism:
        if self.mechanism is not None:
            return self.mechanism
        has_landlock = landlock.abi() >= landlock.OLDEST_ABI
        return Mechanism.LANDLOCK if shutil.which("bwrap") is None and has_landlock else Mechanism.BUBBLEWRAP

    def _check_work_tree(self, cwd: str) -> None:
        own = [os.path.realpath(folder) for folder in own_folders()]
        for path in self._writable(cwd):
            if any(path == folder or path.startswith(f"{folder}/") for folder in own):
                raise SandboxUnavailable(
                    f"{path} belongs to Handrail, and a sandbox does not show that; choose another working directory"
                )

    def _writable(self, cwd: str) -> list[str]:
        return [os.path.realpath(place) for place in ((cwd,) if self.writable is None else self.writable)]

    def _hidden(self) -> list[str]:
        """Including this runtime's own configuration, state and cache, which its commands must not see."""
        return [os.path.realpath(os.path.expanduser(place)) for place in (*self.hidden, *own_folders())]

    # Bubblewrap

    def _by_bubblewrap(self, cwd: str, env: dict[str, str], state: bytes | None) -> Link:
        program = shutil.which("bwrap") or "bwrap"  # by our own PATH, not by that of the commands
        transport = Transport(
            argv=lambda words: [program, *self.arguments(cwd), "--", *words],
            where="the sandbox",
            python=sys.executable,
            env=env,
        )
        return Session(transport, env={}, cwd=cwd, jobs_root="/tmp/handrail", state=state)

    def arguments(self, cwd: str) -> Sequence[str]:
        """For bwrap. A folder comes before what is in it, so that the inner one holds: a work tree in a hidden folder is there,
        and a hidden folder in the work tree is not."""
        steps = {
            "/": ["--ro-bind", "/", "/"],
            "/dev": ["--dev", "/dev"],
            "/proc": ["--proc", "/proc"],
            **self._covers(),
        }
        if self.network:
            # Name resolution uses files that are often links into /run.
            steps["/run/systemd/resolve"] = ["--ro-bind-try", "/run/systemd/resolve", "/run/systemd/resolve"]
        writable = self._writable(cwd)
        for tree in writable:
            for path in runs_elsewhere(tree):
                # A folder that something is mounted on cannot be renamed, and another put in its place.
                steps |= {above: ["--bind", above, above] for above in _between(tree, path) if above not in steps}
                steps[path] = ["--ro-bind", path, path]
        steps |= {path: ["--bind", path, path] for path in writable}
        # Not --die-with-parent, which means the thread that started it. It ends with its stdin, and everything in it.
        words = ["--unshare-all", *(["--share-net"] if self.network else []), "--new-session", "--cap-drop", "ALL"]
        words += [word for path in sorted(steps, key=lambda path: path.split("/")) for word in steps[path]]
        return [*words, "--chdir", cwd]

    def _covers(self) -> dict[str, list[str]]:
        """Hide what is to be hidden, and leave the interpreter where it is, wherever that may be."""
        covers = {place: ["--tmpfs", place] for place in _OWN}
        for path in filter(os.path.exists, (*self._hidden(), *open_sockets(_OWN))):
            covers[path] = ["--tmpfs", path] if os.path.isdir(path) else ["--ro-bind", "/dev/null", path]
        openings = {path: ["--ro-bind", path, path] for path in interpreter.files_below(covers)}
        links = {path: ["--symlink", target, path] for path, target in interpreter.links_below(covers).items()}
        return {**covers, **openings, **links}

    # Landlock

    def _by_landlock(self, cwd: str, env: dict[str, str], state: bytes | None) -> Link:
        temporary = tempfile.mkdtemp(prefix="handrail-")
        hidden = [*self._hidden(), *_SHARED]
        policy = {
            "writable": [*self._writable(cwd), temporary],
            "readable": interpreter.files_below(hidden),
            "hidden": hidden,
            "network": self.network,
            "temporary": temporary,
        }
        transport = Transport(
            argv=lambda words: [sys.executable, "-I", "-S", landlock.__file__, json.dumps(policy), *words],
            where="the sandbox",
            python=sys.executable,
            env={**env, "TMPDIR": temporary, "TMP": temporary, "TEMP": temporary},
        )
        try:
            return Session(transport, env={}, cwd=cwd, jobs_root=f"{temporary}/processes", state=state)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise


def _between(tree: str, path: str) -> list[str]:
    """The folders below `tree` that lead to `path`."""
    names = os.path.relpath(path, tree).split("/")[:-1]
    return [os.path.join(tree, *names[: count + 1]) for count in range(len(names))]
