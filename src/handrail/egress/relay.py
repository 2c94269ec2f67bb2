"""Join two sockets: what one sends, the other gets, without a copy through this process where the kernel can do that."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Awaitable, Callable

_ROOM = 1 << 20
_BUFFER = 1 << 17
_CAN_SPLICE = hasattr(os, "splice")


async def join(client: socket.socket, server: socket.socket) -> None:
    """Until the server is done, or either is gone."""
    pump = _splice if _CAN_SPLICE else _copy
    up = asyncio.ensure_future(pump(client, server))
    down = asyncio.ensure_future(pump(server, client))
    try:
        await asyncio.wait({up, down}, return_when=asyncio.FIRST_EXCEPTION)
        if not (up.done() and up.exception()):
            await down
    finally:
        for each in (up, down):
            each.cancel()
        await asyncio.gather(up, down, return_exceptions=True)


async def _splice(source: socket.socket, target: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    flags = os.SPLICE_F_MOVE | os.SPLICE_F_NONBLOCK
    out, into = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        while True:
            try:
                waiting = os.splice(source.fileno(), into, _ROOM, flags=flags)
            except BlockingIOError:
                await _ready(source.fileno(), loop.add_reader, loop.remove_reader)
                continue
            if not waiting:
                break
            while waiting:
                try:
                    waiting -= os.splice(out, target.fileno(), waiting, flags=flags)
                except BlockingIOError:
                    await _ready(target.fileno(), loop.add_writer, loop.remove_writer)
    finally:
        os.close(out)
        os.close(into)
    _end(target)


async def _copy(source: socket.socket, target: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    room = memoryview(bytearray(_BUFFER))
    while size := await loop.sock_recv_into(source, room):
        await loop.sock_sendall(target, room[:size])
    _end(target)


def _end(target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def _ready(fd: int, add: Callable[..., object], remove: Callable[[int], object]) -> Awaitable[None]:
    waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    add(fd, _finish, waiting)
    waiting.add_done_callback(lambda _: remove(fd))
    return waiting


def _finish(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)
