"""What well-known modules of Python do elsewhere: run commands on other machines, delete over HTTP or in a cloud, drive git."""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet
from typing import Any

from ..values.word_values import UNKNOWN
from .host import Host

_RUNNERS = frozenset(
    "pexpect paramiko fabric fabric2 invoke asyncssh netmiko docker plumbum libtmux kubernetes".split()
)
_RUN_METHODS = frozenset("run sudo local exec_command spawn runu sendline send_command exec_run send_keys".split())
_HTTP = frozenset("requests httpx aiohttp urllib urllib3 http".split())
_SDKS = frozenset(
    "boto boto3 botocore google azure kubernetes docker digitalocean hcloud openstack libcloud github gitlab linode_api4 "
    "oci ovh pulumi vultr cloudflare CloudFlare stripe heroku3 consul hvac etcd3 kafka elasticsearch opensearchpy minio".split()
)
_DELETES = re.compile(
    r"(?:delete|terminate|destroy|purge|drop|prune|remove|stop|kill|shutdown|reboot|deregister|revoke|disable|detach)(?:_\w+)?|"
    r"schedule_key_deletion|empty"
)
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
    if last in _RUN_METHODS and not _RUNNERS.isdisjoint(modules) and isinstance(first, str):
        host.shell(first)
        return True
    if "git" in modules and name.split(".")[-2:-1] == ["git"]:
        host.run("git", last.replace("_", "-"), *(arg if isinstance(arg, str) else UNKNOWN for arg in args))
        return True
    if not _HTTP.isdisjoint(modules):
        method = keywords.get("method") or (first if last in ("request", "stream") else None)
        if (last == "delete" and name != "delete") or (isinstance(method, str) and method.upper() == "DELETE"):
            host.find("cloud.api_delete")
            return True
    if not _SDKS.isdisjoint(modules) and _DELETES.fullmatch(last) and "." in name:
        host.find("container.remove" if "docker" in modules else "cloud.delete")
        return True
    return False
