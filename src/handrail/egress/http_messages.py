"""HTTP/1.1 messages between a client and a server: read, passed on, with texts hidden in what comes back."""

from __future__ import annotations

import asyncio
import re
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from typing import NamedTuple

PIECE_BYTES = 262_144
_CHUNKED, _UNTIL_CLOSE = -1, -2
_MAX_TRAILERS, _MAX_BODY = 100, 8 << 20
_CLOSE_SECONDS = 1.0
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_FIRST = re.compile(
    rf"{_TOKEN.pattern} [^\x00-\x20\x7f]+ HTTP/1\.[01]|HTTP/1\.[01] \d{{3}}( [^\x00-\x08\x0a-\x1f\x7f]*)?"
)


class BadMessage(Exception):
    """It is not HTTP as it should be, and two readers could understand it differently."""


class Head(NamedTuple):
    """The first line of a message, and its fields."""

    first: str
    fields: list[tuple[str, str]]

    def values(self, name: str) -> list[str]:
        return [value for each, value in self.fields if each.lower() == name]

    def without(self, *names: str) -> Head:
        return Head(self.first, [(name, value) for name, value in self.fields if name.lower() not in names])

    def plus(self, name: str, value: str) -> Head:
        return Head(self.first, [*self.fields, (name, value)])

    def encode(self) -> bytes:
        lines = [self.first, *(f"{name}: {value}" for name, value in self.fields), "", ""]
        return "\r\n".join(lines).encode("latin-1")

    @property
    def keeps_open(self) -> bool:
        words = ",".join(self.values("connection")).lower()
        is_old = "HTTP/1.0" in self.first
        return "close" not in words and (not is_old or "keep-alive" in words)


class Server(NamedTuple):
    """Where a request goes."""

    host: str
    port: int
    is_tls: bool


class Prepared(NamedTuple):
    """A request as its server gets it, and what is hidden in the answer."""

    head: Head
    server: Server
    hidden: tuple[bytes, ...] = ()
    body: bytes | None = None  # if it had to be read for the head


Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
ReadBody = Callable[[], Awaitable[bytes]]


class Exchange:
    """Serves one client. `prepare` gets the head and a way to read the whole body, and may raise, which ends it; `connect` opens
    a server; `inspect` sees every piece of a request's body before it is sent."""

    def __init__(
        self,
        client: Streams,
        prepare: Callable[[Head, ReadBody], Awaitable[Prepared]],
        connect: Callable[[Server], Awaitable[Streams]],
        inspect: Callable[[Server, bytes], Awaitable[None]],
    ) -> None:
        self._reader, self._writer = client
        self._prepare, self._connect, self._inspect = prepare, connect, inspect
        self._server: Server | None = None
        self._streams: Streams | None = None

    async def run(self) -> None:
        """Until either side is done."""
        try:
            while (head := await read_head(self._reader)) is not None:
                prepared = await self._prepare(head, partial(self._whole_body, head))
                streams = await self._opened(prepared.server)
                if not await self._serve(head, prepared, *streams):
                    return
        finally:
            if self._streams is not None:
                await close_stream(self._streams[1])

    async def _opened(self, server: Server) -> Streams:
        if self._streams is not None and (self._server != server or self._streams[0].at_eof()):
            streams, self._streams = self._streams, None
            await close_stream(streams[1])
        if self._streams is None:
            self._streams, self._server = await self._connect(server), server
        return self._streams

    async def _serve(
        self, asked: Head, prepared: Prepared, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """One request and its answer; whether another may follow."""
        length = _length(asked, otherwise=0)  # nothing is sent of a request whose end is not clear
        writer.write(prepared.head.encode())
        sending = asyncio.ensure_future(self._send_body(prepared, length, writer)) if length or prepared.body else None
        if sending is not None:
            sending.add_done_callback(partial(_pass_failure, reader))
        try:
            keeps = await self._receive(asked, prepared, reader)
            if sending is not None:
                await sending
            if keeps is None:  # another protocol from here on
                back = _relay(reader, self._writer, Mask(prepared.hidden))
                await asyncio.gather(_relay(self._reader, writer, Mask(())), back)
            return bool(keeps)
        finally:
            if sending is not None:
                sending.cancel()
                await asyncio.gather(sending, return_exceptions=True)

    async def _whole_body(self, asked: Head) -> bytes:
        body = b""
        async for piece in _pieces(self._reader, _length(asked, otherwise=0)):
            body += piece
            if len(body) > _MAX_BODY:
                raise BadMessage(f"its body is longer than {_MAX_BODY:,} bytes, which is too long to be signed here")
        return body

    async def _send_body(self, prepared: Prepared, length: int, writer: asyncio.StreamWriter) -> None:
        before = b""
        async for piece in _pieces(self._reader, length) if prepared.body is None else _one(prepared.body):
            await self._inspect(prepared.server, before + piece)
            before = piece[-200:]
            writer.write(_framed(piece, length))
            await writer.drain()
        if length == _CHUNKED:
            writer.write(b"0\r\n\r\n")
        await writer.drain()

    async def _receive(self, asked: Head, prepared: Prepared, reader: asyncio.StreamReader) -> bool | None:
        mask = Mask(prepared.hidden)
        answer, status = await self._last_head(reader, mask)
        if status == 101:
            return None
        has_body = status not in (204, 304) and not asked.first.startswith("HEAD ")
        length = _length(answer, otherwise=_UNTIL_CLOSE) if has_body else 0
        unpack = _unpacker(answer) if prepared.hidden and has_body else None
        framing = length
        if unpack is not None:
            framing = _CHUNKED if "HTTP/1.1" in asked.first else _UNTIL_CLOSE
            answer = answer.without("content-encoding", "content-length", "transfer-encoding")
            answer = answer.plus("transfer-encoding", "chunked") if framing == _CHUNKED else answer
        elif length == _CHUNKED:
            answer = answer.without("content-length")
        self._writer.write(mask.whole(answer.encode()))
        async for piece in _unpacked(_pieces(reader, length), unpack):
            self._writer.write(_framed(mask.feed(piece), framing))
            await self._writer.drain()
        self._writer.write(_framed(mask.rest(), framing) + (b"0\r\n\r\n" if framing == _CHUNKED else b""))
        await self._writer.drain()
        return asked.keeps_open and answer.keeps_open and framing != _UNTIL_CLOSE

    async def _last_head(self, reader: asyncio.StreamReader, mask: Mask) -> tuple[Head, int]:
        """The head of the answer proper, and its status. Those before it, such as 100, are passed on; so is 101."""
        while (answer := await read_head(reader)) is not None:
            status = int((re.findall(r"\AHTTP/1\.\d (\d{3})\b", answer.first) or ["0"])[0])
            if status < 100:
                raise BadMessage("its status is no number")
            if status >= 200:
                return answer, status
            self._writer.write(mask.whole(answer.encode()))
            if status == 101:
                return answer, status
        raise ConnectionResetError("the server closed the connection")


class Mask:
    """Hides texts in a stream, each by as many stars: lengths stay as they were."""

    def __init__(self, hidden: Sequence[bytes]) -> None:
        self._hidden = sorted(set(hidden), key=len, reverse=True)
        self._longest = max(map(len, hidden), default=0)
        self._first = re.compile(b"|".join({re.escape(each[:1]) for each in hidden}))
        self._kept = b""

    def feed(self, data: bytes) -> bytes:
        """What can be shown by now: the end may be the beginning of a hidden text."""
        if not self._hidden:
            return data
        data = self.whole(self._kept + data)
        tail = data[max(0, len(data) - self._longest + 1) :]
        ends = (tail[found.start() :] for found in self._first.finditer(tail))
        self._kept = next((end for end in ends if any(each.startswith(end) for each in self._hidden)), b"")
        return data[: len(data) - len(self._kept)]

    def whole(self, data: bytes) -> bytes:
        for each in self._hidden:
            if each in data:
                data = data.replace(each, b"*" * len(each))
        return data

    def rest(self) -> bytes:
        kept, self._kept = self._kept, b""
        return kept


def _pass_failure(reader: asyncio.StreamReader, sending: asyncio.Future[None]) -> None:
    """Whoever waits for the answer to what could not be sent gets the reason."""
    if not sending.cancelled() and isinstance(error := sending.exception(), Exception):
        reader.set_exception(error)


async def close_stream(writer: asyncio.StreamWriter) -> None:
    """Close, and do not wait long for the other side to agree."""
    writer.close()
    try:
        async with asyncio.timeout(_CLOSE_SECONDS):
            await writer.wait_closed()
    except OSError:  # a timeout is one too
        pass
    finally:
        writer.transport.abort()


async def read_head(reader: asyncio.StreamReader) -> Head | None:
    """None at the end. Raises BadMessage."""
    try:
        raw = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if error.partial.strip():
            raise BadMessage("it ends within the head") from None
        return None
    except asyncio.LimitOverrunError:
        raise BadMessage("its head is too long") from None
    return parse_head(raw)


def parse_head(raw: bytes) -> Head:
    """Raises BadMessage."""
    first, *lines = raw.decode("latin-1").lstrip("\r\n").removesuffix("\r\n\r\n").split("\r\n")
    fields = []
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not _TOKEN.fullmatch(name) or _CONTROL.search(value):
            raise BadMessage("a field of its head is not well formed")
        fields.append((name, value.strip()))
    if not _FIRST.fullmatch(first):
        raise BadMessage("its first line is not HTTP/1")
    return Head(first, fields)


def _length(head: Head, *, otherwise: int) -> int:
    encodings = [word.strip().lower() for value in head.values("transfer-encoding") for word in value.split(",")]
    lengths = {word.strip() for value in head.values("content-length") for word in value.split(",")}
    if encodings == ["chunked"] and not (lengths and otherwise == 0):
        return _CHUNKED
    if not encodings and not lengths:
        return otherwise
    text = next(iter(lengths), "")
    if encodings or len(lengths) > 1 or not (text.isascii() and text.isdigit()):
        raise BadMessage("its length is not clear")
    return int(text)


async def _one(body: bytes) -> AsyncIterator[bytes]:
    yield body


async def _pieces(reader: asyncio.StreamReader, length: int) -> AsyncIterator[bytes]:
    if length == _CHUNKED:
        while size := _chunk_size(await reader.readline()):
            async for piece in _pieces(reader, size):
                yield piece
            if await reader.readexactly(2) != b"\r\n":
                raise BadMessage("a chunk does not end where it should")
        for _ in range(_MAX_TRAILERS):
            if (await reader.readline()).strip() == b"":
                return
        raise BadMessage("it has too many trailers")
    left = length
    while left:
        piece = await reader.read(PIECE_BYTES if length == _UNTIL_CLOSE else min(left, PIECE_BYTES))
        if not piece:
            if length == _UNTIL_CLOSE:
                return
            raise ConnectionResetError("the connection ended within a message")
        left -= len(piece) if length != _UNTIL_CLOSE else 0
        yield piece


def _chunk_size(line: bytes) -> int:
    text = line.partition(b";")[0].strip()
    if not re.fullmatch(rb"[0-9a-fA-F]{1,16}", text):
        raise BadMessage("a chunk has no size")
    return int(text, 16)


def _framed(piece: bytes, length: int) -> bytes:
    return b"%x\r\n%b\r\n" % (len(piece), piece) if piece and length == _CHUNKED else piece


def _unpacker(answer: Head) -> zlib._Decompress | None:
    """What decompresses an answer that is compressed although it was asked not to be. Raises BadMessage."""
    encoding = ",".join(answer.values("content-encoding")).strip().lower()
    if encoding in ("", "identity"):
        return None
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise BadMessage(f"it is compressed with {encoding}, which was not asked for")
    return zlib.decompressobj(32 + zlib.MAX_WBITS)


async def _unpacked(pieces: AsyncIterator[bytes], unpack: zlib._Decompress | None) -> AsyncIterator[bytes]:
    async for piece in pieces:
        if unpack is None:
            yield piece
            continue
        while piece:
            yield unpack.decompress(piece, PIECE_BYTES)
            piece = unpack.unconsumed_tail


async def _relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, mask: Mask) -> None:
    while piece := await reader.read(PIECE_BYTES):
        writer.write(mask.feed(piece))
        await writer.drain()
    writer.write(mask.rest())
    if writer.can_write_eof():
        writer.write_eof()
