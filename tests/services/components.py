"""Say what a service needs and cannot find: a failure in CI, elsewhere a skipped test that says how to get it."""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
import subprocess
import sys
from typing import NoReturn

import pytest

_SYSTEM_FOLDERS = "/usr/local/sbin:/usr/sbin:/sbin"


def require(*programs: str, packages: str, modules: tuple[str, ...] = ()) -> None:
    """`packages` are those of Debian and Ubuntu, or the command that installs them."""
    if sys.platform != "linux":
        absent("Linux", "these services are made of its namespaces")
    if os.geteuid() != 0:
        absent("root", "run the tests as root, or in a container in which you are")
    if not _has_namespaces():
        absent("namespaces", "allow `unshare --mount --pid` (CAP_SYS_ADMIN)")
    path = f"{os.environ.get('PATH', os.defpath)}:{_SYSTEM_FOLDERS}"
    missing = [program for program in programs if shutil.which(program, path=path) is None]
    missing += [module for module in modules if importlib.util.find_spec(module) is None]
    if missing:
        absent(", ".join(missing), packages if " " in packages else f"apt-get install {packages}")


@functools.cache
def _has_namespaces() -> bool:
    return (
        subprocess.run(["unshare", "--mount", "--pid", "--fork", "true"], capture_output=True, check=False).returncode
        == 0
    )


def absent(what: str, cure: str) -> NoReturn:
    reason = f"needs {what}: {cure}"
    if os.environ.get("CI"):
        pytest.fail(f"{reason} (in CI nothing may be missing)", pytrace=False)
    pytest.skip(reason)
