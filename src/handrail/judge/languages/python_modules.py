"""What well-known modules of Python do elsewhere: run commands on other machines, delete over HTTP or in a cloud, drive git."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Any

from ..values.data_files import Patterns, Words
from ..values.word_values import UNKNOWN
from .host import Host

_WORDS = Words(__file__)
_RE = Patterns(__file__)
_C_LIBRARY = {"reboot": "power.off", "unlink": "code.delete", "kill": "proc.kill_force", "umount2": "disk.unmount"}


def judge(host: Host, name: str, args: list[Any], keywords: dict[str, Any], modules: AbstractSet[str]) -> bool:
    """Whether the call `name(args)` is one of theirs; what is dangerous in it is reported to the host."""
    last = name.rpartition(".")[2]
    first = args[0] if args else None
    if isinstance(first, bytes):
        first = first.decode("utf-8", "replace")
    if "ctypes" in modules and (last in _C_LIBRARY or last == "system"):
        host.find(_C_LIBRARY[last]) if last in _C_LIBRARY else host.shell(first if isinstance(first, str) else UNKNOWN)
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
