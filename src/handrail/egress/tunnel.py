"""Relay the bytes of a tunnel in the kernel, from one socket to the other and back, without looking at them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from threading import Thread

_PIECE_BYTES = 1 << 20


async def relay(client: socket.socket, server: socket.socket) -> None:
    """Until the server is done, or either is gone. Threads do it: an event loop takes longer for a piece than the kernel."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()

    def run() -> None:
        up = Thread(target=_copy, args=(client, server), name="handrail-tunnel", daemon=True)
        up.start()
        _copy(server, client)
        _shut(client, server)
        up.join()
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(ended.set)

    for sock in (client, server):
        sock.setblocking(True)
    Thread(target=run, name="handrail-tunnel", daemon=True).start()
    try:
        await ended.wait()
    except asyncio.CancelledError:
        _shut(client, server)
        await ended.wait()  # the numbers of the sockets must not be given to others before
        raise


def _copy(source: socket.socket, target: socket.socket) -> None:
    out, into = os.pipe()
    try:
        while count := os.splice(source.fileno(), into, _PIECE_BYTES):
            while count:
                count -= os.splice(out, target.fileno(), count)
        target.shutdown(socket.SHUT_WR)
    except OSError:  # one of them is gone
        _shut(source, target)
    finally:
        os.close(out)
        os.close(into)


def _shut(*sockets: socket.socket) -> None:
    for sock in sockets:
        with contextlib.suppress(OSError):  # it was closed
            sock.shutdown(socket.SHUT_RDWR)
