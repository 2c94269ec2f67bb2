"""Serve one client over standard input and output, without a thread that waits for every line.

Meanwhile what a handler prints goes to standard error, and its standard input is empty.
"""

import asyncio
import contextlib
import os
import stat
from collections.abc import AsyncIterator, Iterator
from typing import Any

from ...errors import InvalidArguments

_PIECE_BYTES = 64 * 1024
_IN, _OUT, _ERR = 0, 1, 2


@contextlib.asynccontextmanager
async def stdio_streams() -> AsyncIterator[Any]:
    """The pair of streams that the SDK's server works on."""
    from mcp.server.stdio import stdio_server

    if not (_is_pipe(_IN) and _is_pipe(_OUT)):  # a file or a terminal: a loop cannot wait for those
        async with stdio_server() as streams:
            yield streams
        return
    async with stdio_pair() as (reader, writer):
        lines: Any = _lines(reader)
        try:
            async with stdio_server(lines, _Output(writer)) as streams:  # type: ignore[arg-type]
                yield streams
        finally:
            await lines.aclose()


@contextlib.asynccontextmanager
async def stdio_pair() -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Standard input and output as streams. Both must be pipes, as a client's are, or a terminal."""
    if not all(_is_pipe(each) or os.isatty(each) for each in (_IN, _OUT)):
        raise InvalidArguments("an editor starts this and talks to it through pipes; stdin or stdout is not one")
    loop = asyncio.get_running_loop()
    with _taken(_IN, os.open(os.devnull, os.O_RDONLY)) as reads, _taken(_OUT, os.dup(_ERR)) as writes:
        reader = asyncio.StreamReader(limit=_PIECE_BYTES)
        source = os.fdopen(os.dup(reads), "rb", buffering=0)
        transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), source)
        sink = os.fdopen(os.dup(writes), "wb", buffering=0)
        sending, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, sink)
        sending.set_write_buffer_limits(0)  # until all is written: the SDK's server takes what it has flushed as sent
        writer = asyncio.StreamWriter(sending, protocol, None, loop)
        try:
            yield reader, writer
        finally:
            transport.close()
            if not writer.transport.is_closing():  # the other side may have closed it
                writer.transport.abort()
            os.set_blocking(writes, True)
            os.set_blocking(reads, True)


def _is_pipe(descriptor: int) -> bool:
    try:
        mode = os.fstat(descriptor).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


@contextlib.contextmanager
def _taken(descriptor: int, instead: int) -> Iterator[int]:
    """A private copy of the descriptor, with something else in its place meanwhile."""
    ours = os.dup(descriptor)
    os.dup2(instead, descriptor)
    os.close(instead)
    try:
        yield ours
    finally:
        os.dup2(ours, descriptor)
        os.close(ours)


async def _lines(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    pieces: list[bytes] = []
    while data := await reader.read(_PIECE_BYTES):
        *ends, rest = data.split(b"\n")
        for end in ends:
            yield b"".join([*pieces, end])
            pieces = []
        pieces += [rest] if rest else []


class _Output:
    """The part of a file that the SDK's server uses."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    async def write(self, text: str) -> None:
        self._writer.write(text.encode())

    async def flush(self) -> None:
        await self._writer.drain()
