"""What containers of every engine have in common: what root may do in them, their names, and cleaning up."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable

from .errors import EnvironmentStartError
from .transport import idle_watcher

# What installing packages needs, and ending processes of other users.
CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID")
JOBS_ROOT = "/var/tmp/handrail"  # for persistent containers: /tmp may be emptied between uses
NEEDS = (
    "A container needs bash 4.4 and Python 3.8: choose an image that has them, such as python:3.13, or add them to it"
)

_cleared: set[object] = set()


def start_error(image: str, error: Exception) -> EnvironmentStartError:
    if isinstance(error, EnvironmentStartError):
        return error
    return EnvironmentStartError(f"no shell could be started from the image {image}: {error}. {NEEDS}")


def idle_watcher_command(python: str, *words: str) -> list[str]:
    """The command that runs the idle watcher in a container."""
    return [python, "-I", "-S", "-c", idle_watcher.source(), *words]


def temporary_name(readable: str) -> str:
    return "-".join(filter(None, ("handrail", readable, os.urandom(3).hex())))


def persistent_name(task: str) -> str:
    """The same for the same task of the same user, so that two simultaneous starts cannot make two."""
    from ..config.paths import state_dir

    whose = (os.getuid(), str(state_dir()), task)
    return "handrail-" + hashlib.sha256(repr(whose).encode()).hexdigest()[:16]


def fingerprint(*parts: str) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def clear_once(place: object, prune: Callable[[], object]) -> None:
    """With the first container of this process, remove in the background what earlier processes left in `place`."""
    if place not in _cleared:
        _cleared.add(place)
        threading.Thread(target=prune, name="handrail-prune", daemon=True).start()
