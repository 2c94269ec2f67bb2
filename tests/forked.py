"""Be a Python that the tests' fork server has forked: `forked.py SOCKET ARGUMENTS...`, for programs that start one themselves.

It has the streams, the environment and the working directory of this process, gets its signals and ends with it, and the other
way round. What is imported here is imported by every test server: keep it small.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys


def main(name: str, arguments: list[str]) -> None:
    os.umask(mask := os.umask(0o077))
    request = {"arguments": arguments, "cwd": os.getcwd(), "env": dict(os.environ), "umask": mask, "new_session": False}
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as orders:
        orders.connect(name)
        line = json.dumps({**request, "is_tied": True}).encode()
        socket.send_fds(orders, [line], [0, 1, 2, theirs.fileno()])
    pid = int(ours.recv(16))
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(number, lambda got, _: os.kill(pid, got))
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nothing, stream)  # whose other end is to see when that process closes its own
    status = int(ours.recv(16))
    if status < 0:
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status & 0xFF)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
