"""Run scripts in real bash, in a sandbox where programs only write down how they were called.

The root is read-only, there is no network, and processes are alone in their name space; what a script may change is
gone with it. Every program that it could do harm with is replaced by one that logs its arguments.
"""

from __future__ import annotations

import json
import os
import stat
import subprocess
from collections.abc import Sequence
from pathlib import Path

REAL = frozenset(
    "bash sh env nohup nice timeout setsid stdbuf flock xargs find base64 rev tr xxd cat tee printf awk gawk mawk sed "
    "python3 perl mkdir chmod sleep true false cut head sort uniq dirname basename".split()
)
"""Programs that are themselves in the sandbox: those that the forms are made with."""
_STUB = """#!/bin/bash
printf '%s\\0' "${0##*/}" "$@" >> "$LOG"
printf '\\1' >> "$LOG"
"""
_DRIVER = """
import json, os, shutil, subprocess, sys
scripts = json.load(open("/tmp/given/scripts.json"))
logs = []
for script in scripts:
    log = "/tmp/log"
    open(log, "w").close()
    for name in ("a.sh", "b.sh", "lock"):
        if os.path.exists("/tmp/" + name):
            os.remove("/tmp/" + name)
    shutil.rmtree("/tmp/cwd")
    os.mkdir("/tmp/cwd")
    environment = {"PATH": "/tmp/given/stubs:/usr/bin:/bin", "LOG": log, "HOME": "/tmp/home", "USER": "someone"}
    try:
        subprocess.run(["bash", "-c", script], env=environment, cwd="/tmp/cwd", stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=10)
    except subprocess.TimeoutExpired:
        pass
    logs.append(open(log, encoding="utf-8", errors="replace").read())
json.dump(logs, sys.stdout)
"""


def programs_run(scripts: Sequence[str], folder: Path, names: Sequence[str]) -> list[list[tuple[str, ...]]]:
    """What each script runs: the command lines that reached the programs with these names, in order."""
    stubs = folder / "stubs"
    stubs.mkdir(parents=True, exist_ok=True)
    command = ["bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    command += ["--tmpfs", "/tmp", "--dir", "/tmp/cwd", "--dir", "/tmp/home", "--dir", "/tmp/given"]
    for name in names:
        if name in REAL:
            continue
        stub = stubs / name
        stub.write_text(_STUB)
        stub.chmod(stub.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
        for place in ("/usr/bin", "/usr/sbin"):
            if os.path.isfile(f"{place}/{name}") and not os.path.islink(f"{place}/{name}"):
                command += ["--ro-bind", str(stub), f"{place}/{name}"]
    (folder / "scripts.json").write_text(json.dumps(list(scripts)))
    command += [
        "--ro-bind",
        str(folder / "scripts.json"),
        "/tmp/given/scripts.json",
        "--ro-bind",
        str(stubs),
        "/tmp/given/stubs",
    ]
    ran = subprocess.run([*command, "/usr/bin/python3", "-c", _DRIVER], capture_output=True, text=True, check=True)
    return [_lines(log) for log in json.loads(ran.stdout)]


def _lines(log: str) -> list[tuple[str, ...]]:
    return [tuple(line.split("\0")[:-1]) for line in log.split("\1") if line]
