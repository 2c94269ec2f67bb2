"""What the tests of several services look for."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from ..support import wait_until
from . import leftovers
from .tenants import Tenant

EVERY_BYTE = bytes(range(256)) * 64
# As our backends start their far end: the source comes first on stdin, its length before it; then it is talked to in bytes.
LOADER = "import os;n=int(os.read(0,9));b=b''\nwhile len(b)<n:b+=os.read(0,n-len(b))\nexec(b)"
REVERSER = b"""
import os, struct
def exactly(count):
    data = b""
    while len(data) < count:
        chunk = os.read(0, count - len(data))
        if not chunk:
            raise SystemExit(7)
        data += chunk
    return data
while True:
    frame = exactly(struct.unpack(">I", exactly(4))[0])
    answer = struct.pack(">I", len(frame)) + frame[::-1]
    while answer:
        answer = answer[os.write(1, answer):]
"""


def kill_run(tenant: Tenant) -> None:
    """`kill -9` of the caretaker, as when a whole test run is killed; then what the next run does first."""
    os.kill(tenant.caretaker, signal.SIGKILL)
    tenant.leave()

    def swept() -> bool:
        # The kernel takes a moment to take back the dead one's address.
        leftovers.sweep()
        return not tenant.folder.exists()

    wait_until(swept)


def running_with(mark: str) -> list[int]:
    """The processes of this machine, in whatever namespace, that have the mark in their environment."""
    found = []
    for pid in filter(leftovers.is_running, leftovers.processes()):
        try:
            environment = Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            continue
        if mark.encode() in environment:
            found.append(pid)
    return found


def is_mounted(folder: Path) -> bool:
    return folder.name in Path("/proc/self/mountinfo").read_text()
