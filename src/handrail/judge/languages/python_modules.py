"""What well-known modules of Python do elsewhere: run commands on other machines, delete over HTTP or in a cloud, drive git."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Any

from ..values.data_files import Patterns, Words
from ..values.word_values import UNKNOWN
from .host import Host

_WORDS = Words(__file__)
_RE = Patterns(__file__)
_C_LIBRARY = {
    "reboot": "power.off", "unlink": "code.delete", "remove": "code.delete", "rmdir": "code.delete",
    "kill": "proc.kill_force", "umount2": "disk.unmount", "PyRun_SimpleString": "code.exec_computed",
    "dlopen": "env.inject", "syscall": "code.exec_computed",
}  # fmt: skip


def judge(host: Host, name: str, args: list[Any], keywords: dict[str, Any], modules: AbstractSet[str]) -> bool:
    """Whether the call `name(args)` is one of theirs; what is dangerous in it is reported to the host."""
    last = name.rpartition(".")[2]
    first = args[0] if args else None
    if isinstance(first, bytes):
        first = first.decode("utf-8", "replace")
    if not modules.isdisjoint(("ctypes", "cffi")) and _from_c(host, last, args):
        return True
    if last in ("subprocess_exec", "subprocess_shell") and "asyncio" in modules:
        words = [arg if isinstance(arg, str) else UNKNOWN for arg in args[1:]]
        host.start(*words) if last == "subprocess_exec" else host.shell(words[0] if words else UNKNOWN)
        return True
    if name == "fileinput.input" and keywords.get("inplace") and isinstance(first, str):
        host.write(first)
        return True
    if name.endswith(".drop") and "pymongo" in modules and not args:
        host.find("sql.destructive")
        return True
    if "tkinter" in modules and last in ("eval", "evalfile"):
        host.find("code.exec_computed")
        return True
    if last in _WORDS.run_methods and not _WORDS.runners.isdisjoint(modules) and isinstance(first, str):
        host.shell(first)
        return True
    if "git" in modules and name.split(".")[-2:-1] == ["git"]:
        host.run("git", last.replace("_", "-"), *(arg if isinstance(arg, str) else UNKNOWN for arg in args))
        return True
    if not _WORDS.http.isdisjoint(modules):
        method = keywords.get("method") or (first if last in ("request", "stream") else None)
        if (last == "delete" and name != "delete") or (isinstance(method, str) and method.upper() == "DELETE"):
            host.find("cloud.api_delete")
            return True
    if not _WORDS.sdks.isdisjoint(modules) and _RE.deletes.fullmatch(last) and "." in name:
        host.find("container.remove" if "docker" in modules else "cloud.delete")
        return True
    return False


def _from_c(host: Host, name: str, args: list[Any]) -> bool:
    """A function of the C library: what it is given are bytes."""
    words = [arg.decode("utf-8", "replace") if isinstance(arg, bytes) else arg for arg in args if arg is not None]
    known = [word if isinstance(word, str) else UNKNOWN for word in words] or [UNKNOWN]
    if name in ("system", "popen"):
        host.shell(known[0])
    elif name.startswith("exec"):
        host.start(known[0], *known[2:])
    elif name == "rename":
        host.run("mv", *known)
    elif name in _C_LIBRARY and (name != "dlopen" or UNKNOWN not in known[0]):
        host.find(_C_LIBRARY[name])
    else:
        return False
    return True
