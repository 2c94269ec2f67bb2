"""The entry point of the shell host, once it is loaded."""

from __future__ import annotations

import os
import socket

from . import proc, wire
from .fork_server import ForkServer, open_pidfd
from .wire import Packet


def main(arguments: Packet) -> None:
    """Role `fork_server`: serve a client on this machine, through its socket. `remote`: serve the client at stdin and stdout."""
    if arguments["role"] == "fork_server":
        served = socket.socket(fileno=arguments["socket"])
        owner, alive = open_pidfd(arguments["owner"]), None
        if arguments["protection"] is not None:
            from . import protection  # sent along only when the shell is local

            report = protection.enter(arguments["protection"])
            alive = report.pop("alive", None)
            wire.send(served, report)
        ForkServer(served, owner, alive).run()
        return
    mine, theirs = wire.packet_pair()
    relay = os.getpid()
    if os.fork() == 0:
        try:
            os.setsid()
            client = os.dup(theirs.fileno())
            wire.keep_only((2, client))
            null = os.open("/dev/null", os.O_RDWR)
            os.dup2(null, 0)
            os.dup2(null, 1)
            ForkServer(socket.socket(fileno=client), open_pidfd(relay)).run()
        finally:
            os._exit(0)
    theirs.close()
    proc.set_title("handrail-relay")
    from .frame_relay import run_frame_relay  # not sent along when the shell is local

    run_frame_relay(mine, {**arguments, "env": {**os.environ, **arguments["env"]}})
