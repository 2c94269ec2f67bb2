"""The name server of a task's commands: answers from the names that the task may look up, after asking about others."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import struct

from ..errors import HandrailError
from .programs import program_of
from .questions import Questions

_HEADER = struct.Struct(">HHHHHH")
_TYPES = {1: 4, 28: 6}  # A and AAAA, and the version of address that each is about
_ANSWER, _REFUSED, _UNKNOWN = 0x8180, 0x8185, 0x8183
_MAX_ANSWERS = 20
_SECONDS = 10


class NameServer(asyncio.DatagramProtocol):
    """On UDP. Names have no other records than addresses here."""

    def __init__(self, questions: Questions) -> None:
        self._questions = questions
        self._tasks: set[asyncio.Task[None]] = set()
        self.transport: asyncio.DatagramTransport | None = None

    async def start(self) -> str:
        """Where it listens: address and port."""
        loop = asyncio.get_running_loop()
        self.transport, _ = await loop.create_datagram_endpoint(lambda: self, local_addr=("127.0.0.1", 0))
        return f"127.0.0.1:{self.transport.get_extra_info('sockname')[1]}"

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self.transport is not None:
            self.transport.close()

    def datagram_received(self, data: bytes, address: tuple[str, int]) -> None:
        task = asyncio.ensure_future(self._serve(data, address))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, query: bytes, address: tuple[str, int]) -> None:
        with contextlib.suppress(ValueError, IndexError, struct.error):  # what is no question gets no answer
            answer = await self._answer(query, address)
            if self.transport is not None and not self.transport.is_closing():
                self.transport.sendto(answer, address)

    async def _answer(self, query: bytes, address: tuple[str, int]) -> bytes:
        number, flags, questions, *_ = _HEADER.unpack_from(query)
        if flags & 0xF800 or questions != 1:
            raise ValueError("not a question")
        name, end = _name(query)
        (kind,) = struct.unpack_from(">H", query, end)
        question, status, found = query[_HEADER.size : end + 4], _ANSWER, []
        try:
            if kind in _TYPES:
                program = program_of(address[1], "udp") or "a command"
                addresses = [
                    ipaddress.ip_address(each) for each in await self._questions.look_up(name, lambda: program)
                ]
                found = [each.packed for each in addresses if each.version == _TYPES[kind]][:_MAX_ANSWERS]
        except HandrailError as error:
            status = _UNKNOWN if "is not known" in str(error) else _REFUSED
        records = (struct.pack(">HHHIH", 0xC00C, kind, 1, _SECONDS, len(each)) + each for each in found)
        return _HEADER.pack(number, status, 1, len(found), 0, 0) + question + b"".join(records)


def _name(query: bytes) -> tuple[str, int]:
    """The name in question, and where it ends."""
    labels, at = [], _HEADER.size
    while size := query[at]:
        if size > 63:
            raise ValueError("a name in a question is written out")
        labels.append(query[at + 1 : at + 1 + size].decode("ascii"))
        at += 1 + size
    return ".".join(labels), at + 1
