"""This process: started again from the code that runs now, and hidden from others.

Python puts the current folder on `sys.path` for `-m` and `-c`, and relative entries of PYTHONPATH mean that folder too. A
project that somebody cloned, or an agent, could put a module there that takes the place of one of ours. So a new process gets
the absolute folders that this one uses, and no others.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys

_BOOT = (
    "import sys; sys.path[:] = sys.argv.pop(1).split('\\n'); sys.argv[0] = 'handrail'; "
    "from handrail.cli import main; main()"
)
_PR_SET_DUMPABLE = 4


def self_command(*arguments: str) -> list[str]:
    """The words of `handrail ARGUMENTS...`, whatever the folder it is started in."""
    return [sys.executable, "-I", "-c", _BOOT, "\n".join(import_folders()), *arguments]


def import_folders() -> list[str]:
    """The folders of `sys.path` that hold installed code: not the current folder, nor any that is relative to it."""
    own = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    found = dict.fromkeys(
        each for each in sys.path if os.path.isabs(each) and (_is_installed(each) or not _is_here(each))
    )
    return list(dict.fromkeys([*found, own]))


def forget_start_folder() -> None:
    """Take out of `sys.path` the folder that Python put there for this start: the script's, or the current one."""
    if sys.flags.safe_path or not sys.path:
        return
    first = sys.path[0]
    if first in ("", os.path.dirname(os.path.realpath(sys.argv[0]))) or (_is_here(first) and not _is_installed(first)):
        del sys.path[0]


def _is_here(folder: str) -> bool:
    try:
        return os.path.samefile(folder or ".", ".")
    except OSError:
        return False


def _is_installed(folder: str) -> bool:
    """Whether it belongs to this Python, so that starting in it adds nothing."""
    real = os.path.realpath(folder) + os.sep
    return any(real.startswith(os.path.realpath(prefix) + os.sep) for prefix in (sys.prefix, sys.base_prefix))


def hide_process() -> None:
    """Hide what this process was given: API keys and tokens are in its environment, which `/proc/PID/environ` shows to every
    other process of the same user, such as what an agent runs. Empties that block, and lets no process of this user read this
    one's memory. Root's can.

    `os.environ` and what child processes inherit stay as they are. Nothing happens where the system has no such thing.
    """
    with contextlib.suppress(OSError, AttributeError, ValueError):
        libc = ctypes.CDLL(None)
        libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
        _empty_block(libc)


def _empty_block(libc: ctypes.CDLL) -> None:
    with open("/proc/self/stat", "rb") as file:
        start, end = map(int, file.read().rpartition(b")")[2].split()[47:49])
    if not 0 < start < end:
        return
    # The C library's list of variables points into the block: it gets copies first.
    libc.clearenv()
    for name, value in os.environb.items():
        os.putenv(name, value)
    ctypes.memset(start, 0, end - start)
