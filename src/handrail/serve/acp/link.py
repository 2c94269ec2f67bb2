"""The way from a session to its editor, from any thread: updates in their order, and requests with an answer."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ...agent.events import ToolStarted
from ...errors import ToolFailed

if TYPE_CHECKING:
    from acp import Client
    from acp.schema import ClientCapabilities

log = logging.getLogger(__name__)
T = TypeVar("T")
REQUEST_SECONDS = 30.0
# What editors are told and shown: capabilities, kinds of tools, modes, commands.
PRESENTATION: dict[str, Any] = json.loads(Path(__file__).with_name("presentation.json").read_text("utf-8"))


class EditorLink:
    """One session's side of the connection. Made in the connection's loop; agents and tools run in others."""

    def __init__(self, client: Client, offered: ClientCapabilities | None) -> None:
        self.client, self.loop, self.session_id = client, asyncio.get_running_loop(), ""
        files = offered.fs if offered else None
        self.reads_files = bool(files and files.read_text_file)
        self.writes_files = bool(files and files.write_text_file)
        self.has_terminals = bool(offered and offered.terminal)
        self.has_forms = bool(offered and offered.elicitation and offered.elicitation.form)
        self.uses_terminals = False  # whether commands run in the editor's terminals
        self.open_calls: dict[str, ToolStarted] = {}  # whose cards are not over
        self._updates: asyncio.Queue[Any] = asyncio.Queue()
        self._sender = self.loop.create_task(self._send_all())

    def send(self, update: Any) -> None:
        """Send an update after those before it. From any thread; what comes after the end is dropped."""
        with contextlib.suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self._updates.put_nowait, update)

    async def flush(self) -> None:
        """In the connection's loop: until the editor was sent everything so far."""
        await asyncio.sleep(0)  # what another thread has handed over is put into the queue first
        await self._updates.join()

    async def _send_all(self) -> None:
        while True:
            update = await self._updates.get()
            try:
                await self.client.session_update(session_id=self.session_id, update=update)
            except Exception as error:  # noqa: BLE001  an editor that has gone away is noticed by who reads from it
                log.debug("an update was not sent: %s: %s", type(error).__name__, error)
            finally:
                self._updates.task_done()

    async def ask(self, request: Coroutine[Any, Any, T]) -> T:
        """From another loop: do this in the connection's loop. Cancelling one cancels the other."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(request, self.loop))

    def wait(self, request: Coroutine[Any, Any, T], *, seconds: float = REQUEST_SECONDS) -> T:
        """From another thread: the editor's answer. Raises ToolFailed if it refuses or is silent."""
        future = asyncio.run_coroutine_threadsafe(request, self.loop)
        try:
            return future.result(seconds)
        except Exception as error:
            future.cancel()
            raise ToolFailed(f"the editor did not do it: {error or type(error).__name__}") from error

    def close(self) -> None:
        self._sender.cancel()
