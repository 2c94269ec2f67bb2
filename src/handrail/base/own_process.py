"""This process: which runtime it is, whether an agent started it, how it is started again, and how it is hidden from others.

Python puts the current folder on `sys.path` for `-m` and `-c`, and relative entries of PYTHONPATH mean that folder too. A
project that somebody cloned, or an agent, could put a module there that takes the place of one of ours. So a new process gets
the absolute folders that this one uses, and no others.
"""

import contextlib
import os
import sys
from functools import lru_cache

from ..errors import Denied

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
    found = [each for each in sys.path if os.path.isabs(each) and (_is_installed(each) or not _is_here(each))]
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
    one's memory. Root's can. `os.environ` and what child processes inherit stay as they are. Nothing happens where the system
    has no such thing."""
    with contextlib.suppress(OSError, AttributeError, ValueError):
        import ctypes  # only the program itself is hidden

        libc = ctypes.CDLL(None)
        libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
        with open("/proc/self/stat", "rb") as file:
            start, end = map(int, file.read().rpartition(b")")[2].split()[47:49])
        if not 0 < start < end:
            return
        # The C library's list of variables points into the block: it gets copies first.
        libc.clearenv()
        for name, value in os.environb.items():
            os.putenv(name, value)
        ctypes.memset(start, 0, end - start)


MARKER = "HANDRAIL_INSIDE"
_KEEPERS = frozenset({"handrail-fork", "handrail-shell", "handrail-job", "handrail-relay"})
_MAX_ANCESTORS = 200


def started_by_agent() -> bool:
    """Whether an agent's tool started this process, as far as can be known: then it may not lift the agent's gate. The shells
    of the tools have a marker in their environment. A command can remove it from its own (`env -i`), but not from the shell
    above it, nor can it leave the supervisors of the shells, to which orphans are reparented. So the ancestors are checked too,
    where the system shows them."""
    return MARKER in os.environ or _is_below_agent(os.getpid())


@lru_cache(maxsize=2)  # a process never gets an ancestor that was not above it before
def _is_below_agent(pid: int) -> bool:
    """Whether this process or one of its ancestors is marked. False where there is no /proc."""
    for _ in range(_MAX_ANCESTORS):
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                text = file.read().decode("utf-8", "replace")
        except OSError:
            return False
        # The name is in parentheses and may contain some itself.
        name, rest = text[text.index("(") + 1 : text.rindex(")")], text[text.rindex(")") + 1 :]
        if name in _KEEPERS or _is_marked(pid):
            return True
        pid = int(rest.split()[1])
        if pid <= 0:
            return False
    return False


def refuse_agents(what: str) -> None:
    """Raise Denied in a process that an agent's tool started."""
    if started_by_agent():
        raise Denied(f"an agent cannot {what}: this shell was started by one; use a terminal of your own")


def _is_marked(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            variables = file.read().split(b"\0")
    except OSError:  # another user's: sudo and init are above most processes
        return False
    return any(variable.startswith(MARKER.encode() + b"=") for variable in variables)


def runtime_id() -> str:
    """The id of this process, unique for ever, made of characters that labels and file names allow. What is stored outside this
    process has the id of its maker. It consists of the machine, its boot, the process namespace, the user, the pid and the
    process's start time: a pid alone means little, as pids are reused."""
    return _named(os.getpid())


def has_exited(owner: str) -> bool:
    """Whether the runtime with that id has certainly exited. False for what cannot be seen from here."""
    parts = owner.split("-")
    if len(parts) != 6 or not all(part.isdigit() for part in parts[2:]) or parts[0] != _machine():
        return False
    _, boot, namespace, user, pid, started = parts
    if boot != boot_id():
        return True
    # Some machines hide the processes of other users from all but root.
    if namespace != pid_namespace() or os.geteuid() not in (0, int(user)):
        return False
    return is_gone(int(pid), int(started))


def is_gone(pid: int, started: int) -> bool:
    """Whether the process that had this pid, and started then, has exited."""
    now = start_time(pid)
    return now is None or (now != started and 0 not in (now, started))


def pid_of(owner: str) -> int:
    """The pid that the runtime has or had."""
    return int(owner.split("-")[4])


@lru_cache(maxsize=1)  # a fork has its own
def _named(pid: int) -> str:
    return f"{_machine()}-{boot_id()}-{pid_namespace()}-{os.getuid()}-{pid}-{start_time(pid) or 0}"


@lru_cache(maxsize=1)
def _machine() -> str:
    import hashlib  # it loads OpenSSL, and few starts store anything

    # A cloned machine has the same id, but seldom the same name.
    return hashlib.sha256(f"{_read('/etc/machine-id')} {os.uname().nodename}".encode()).hexdigest()[:8]


@lru_cache(maxsize=1)
def boot_id() -> str:
    """The same until the machine starts again."""
    return _read("/proc/sys/kernel/random/boot_id").partition("-")[0] or "0"


def pid_namespace() -> str:
    try:
        return str(os.stat("/proc/self/ns/pid").st_ino)
    except OSError:
        return "0"


def _read(path: str) -> str:
    try:
        with open(path) as file:
            return file.read().strip()
    except OSError:
        return ""


def start_time(pid: int) -> int | None:
    """When a process started, in clock ticks; 0 when that is unknown, None when it does not run."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
        return None if fields[0] in (b"Z", b"X") else int(fields[19])
    with contextlib.suppress(PermissionError):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return None
    return 0
