"""Where the far side begins, once it is loaded."""

from __future__ import annotations

import os
import socket

from . import proc, wire
from .fork_server import Guard
from .wire import Packet


def main(arguments: Packet) -> None:
    """`fork_server`: serve a client on this machine, by the socket it passed on. `remote`: serve the other end of our pipes."""
    if arguments["role"] == "fork_server":
        Guard(socket.socket(fileno=arguments["socket"]), owner=arguments["owner"]).run()
        return
    mine, theirs = wire.packet_pair()
    pump = os.getpid()
    if os.fork() == 0:
        try:
            os.setsid()
            guard = os.dup(theirs.fileno())
            wire.keep_only((2, guard))
            null = os.open("/dev/null", os.O_RDWR)
            os.dup2(null, 0)
            os.dup2(null, 1)
            Guard(socket.socket(fileno=guard), owner=pump).run()
        finally:
            os._exit(0)
    theirs.close()
    proc.set_title("handrail-pump")
    from .frame_relay import run_pump

    run_pump(mine, {**arguments, "env": {**os.environ, **arguments["env"]}})
