"""Run local commands under bubblewrap: a read-only system, a writable work tree, a private /tmp, and no network."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from ...config.paths import config_path, state_dir
from .errors import SandboxUnavailable
from .link import Link
from .session import Session, Transport

# What a command has no business to read, in the user's home: keys, and passwords of other programs.
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


@dataclass(frozen=True, slots=True)
class BubblewrapPolicy:
    """What a sandboxed command may reach. The working directory is writable unless `writable` says otherwise."""

    writable: tuple[str, ...] | None = None
    network: bool = False
    hidden: tuple[str, ...] = DEFAULT_HIDDEN

    def connect(self, *, cwd: str, env: dict[str, str], state: bytes | None) -> Link:
        program = shutil.which("bwrap")
        if program is None:
            raise SandboxUnavailable(
                "a sandbox was asked for, and bubblewrap (bwrap) is not installed; "
                "install the package bubblewrap, or turn the sandbox off. Nothing was run without it"
            )
        transport = Transport(
            argv=lambda words: [program, *self.arguments(cwd), "--", *words],
            where="the sandbox",
            python=sys.executable,
            env=env,
        )
        return Session(transport, env={}, cwd=cwd, jobs_root="/tmp/handrail", state=state)

    def arguments(self, cwd: str) -> Sequence[str]:
        """For bwrap. Later ones win, so that a work tree inside of a hidden folder is there."""
        # Not --die-with-parent, which would mean the thread that started it. It ends with its stdin, and all in it.
        words = ["--unshare-all", "--new-session", "--ro-bind", "/", "/"]
        words += ["--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "--tmpfs", "/run", "--tmpfs", "/dev/shm"]
        for place in (*self.hidden, *_own_folders()):
            path = os.path.realpath(os.path.expanduser(place))
            if os.path.isdir(path):
                words += ["--tmpfs", path]
            elif os.path.exists(path):
                words += ["--ro-bind", "/dev/null", path]
        if self.network:
            # Names are looked up by files that are often links into /run.
            words += ["--share-net", "--ro-bind-try", "/run/systemd/resolve", "/run/systemd/resolve"]
        for place in (cwd,) if self.writable is None else self.writable:
            path = os.path.realpath(place)
            words += ["--bind", path, path]
        return [*words, "--chdir", cwd]


def _own_folders() -> tuple[str, ...]:
    """What this runtime knows and decides by is nothing for the commands that it runs."""
    return str(config_path().parent), str(state_dir())
