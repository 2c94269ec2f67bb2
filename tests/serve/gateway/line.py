"""A line to a server that can be cut, and that can lose an answer."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from urllib.parse import urlsplit


class Line:
    """Forwards from a port of its own to the server at `url`. While it is cut, who calls is turned away at once."""

    def __init__(self, url: str) -> None:
        self._there = urlsplit(url)
        self._is_cut = False
        self._losing = b""
        self.turned_away = 0
        self._forwarding: set[asyncio.Task[None]] = set()
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self.loop.run_until_complete, args=(self._run(),), name="line", daemon=True
        )
        self._listens = threading.Event()
        self._thread.start()
        assert self._listens.wait(20)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def cut(self) -> None:
        asyncio.run_coroutine_threadsafe(self._cut(), self.loop).result(20)

    def mend(self) -> None:
        self._is_cut = False

    def lose_answer_to(self, words: bytes) -> None:
        """The next request with these words arrives, but its answer does not."""
        self._losing = words

    @property
    def has_lost(self) -> bool:
        return not self._losing

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self._over.set)
        self._thread.join()
        self.loop.close()

    async def _run(self) -> None:
        self._over = asyncio.Event()
        server = await asyncio.start_server(self._take, "127.0.0.1", 0)
        self._port = server.sockets[0].getsockname()[1]
        self._listens.set()
        await self._over.wait()
        await self._cut()
        server.close()
        await server.wait_closed()

    async def _cut(self) -> None:
        self._is_cut = True
        for task in self._forwarding:
            task.cancel()
        await asyncio.gather(*self._forwarding, return_exceptions=True)

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._forwarding.add(task)
        try:
            with contextlib.suppress(asyncio.CancelledError):  # cut
                await self._forward(reader, writer)
        finally:
            self._forwarding.discard(task)
            writer.transport.abort()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_cut:
            self.turned_away += 1
            return
        there_reader, there_writer = await asyncio.open_connection(self._there.hostname, self._there.port)
        is_lost = asyncio.Event()

        async def ask() -> None:
            while data := await reader.read(65536):
                if self._losing and self._losing in data:
                    is_lost.set()
                there_writer.write(data)

        async def answer() -> None:
            while data := await there_reader.read(65536):
                if is_lost.is_set():
                    self._losing = b""
                    return
                writer.write(data)

        pumps = [asyncio.create_task(ask()), asyncio.create_task(answer())]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            there_writer.transport.abort()
