"""One turn of an agent as a chat sees it: what it does in one message that is rewritten, what it says in others."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from ...agent.events import End, Event, MessageEnded, Notice, TextDelta, ToolEnded, ToolProgress, ToolStarted, TurnEnded
from ...approval.display import visible
from ...errors import HandrailError
from ...platforms.adapter import Unreachable

if TYPE_CHECKING:
    from ...platforms.adapter_table import Account

log = logging.getLogger(__name__)

# Platforms bear about one change a second.
_PAUSE_SECONDS = 1.0
_SHOWN_LINES = 12
_HEAD_CHARS = 1_000
_MAX_RETRY_SECONDS = 5.0


class Text:
    """One message that grows. `wanted` is what it should say, `said` what it says, `begun` what it said first."""

    def __init__(self) -> None:
        self.wanted, self.said, self.begun, self.message = "", "", "", ""
        self.key = uuid.uuid4().hex


class Telling:
    """Use it as a context around a turn. What is said at the end is sent until it has arrived."""

    def __init__(self, account: Account, chat: str) -> None:
        self._adapter, self._chat = account.adapter, chat
        self._progress, self._answer = Text(), Text()
        self._calls: dict[str, tuple[str, str]] = {}  # what was called, and how it stands
        self._showing = asyncio.Lock()
        self._changed = asyncio.Event()
        self._said_something = False

    async def __aenter__(self) -> Telling:
        self._writer = asyncio.create_task(self._write())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._writer.cancel()
        await asyncio.wait({self._writer})

    async def hear(self, event: Event) -> None:
        match event:
            case TextDelta(text):
                self._answer.wanted += text
            case ToolStarted(call_id, tool, arguments, emoji):
                what = visible(str(next(iter(arguments.values()), "")), max_chars=80)
                self._calls[call_id] = (f"{emoji or '🔧'} {tool} {what}", "")
            case ToolProgress(call_id, _, message, _) if call_id in self._calls:
                self._calls[call_id] = (self._calls[call_id][0], f"… {visible(message, max_chars=80)}")
            case ToolEnded(call_id, _, _, error_type, seconds) if call_id in self._calls:
                ended = f"✗ {error_type}" if error_type else "✓"
                self._calls[call_id] = (self._calls[call_id][0], f"{ended} {seconds:.1f} s")
            case Notice(text):
                self._calls[uuid.uuid4().hex] = (f"ℹ️ {visible(text, max_chars=200)}", "")
            case MessageEnded():
                await self._finish_answer()
            case TurnEnded():
                await self._finish(event)
        lines = [" ".join(each).strip() for each in self._calls.values()]
        left_out = [f"… {len(lines) - _SHOWN_LINES} before"] if len(lines) > _SHOWN_LINES else []
        self._progress.wanted = "\n".join([*left_out, *lines[-_SHOWN_LINES:]])
        self._changed.set()

    async def _write(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            if self._adapter.can_edit:
                for text in (self._progress, self._answer):
                    with contextlib.suppress(HandrailError):  # the next change, or the end, tells it
                        await self._show(text)
            await asyncio.sleep(_PAUSE_SECONDS)

    async def _show(self, text: Text) -> None:
        async with self._showing:  # the writer and the end may both want to begin the same message
            wanted = text.wanted.strip()
            if len(wanted) > self._adapter.max_chars:
                wanted = wanted[:_HEAD_CHARS] + " …"
            if not wanted or wanted == text.said:
                return
            if not text.message:
                # A key stands for one text: what was tried before may have arrived, and only its answer been lost.
                text.begun = text.begun or wanted
                text.message = await self._adapter.send(self._chat, text.begun, key=text.key)
                text.said = text.begun
            if text.said != wanted:
                await self._adapter.edit(self._chat, text.message, wanted)
                text.said = wanted

    async def _finish_answer(self) -> None:
        """An answer of the model is complete: it is said whole, and the next one is another message."""
        answer, self._answer = self._answer, Text()
        if not answer.wanted.strip():
            return
        self._said_something = True
        is_said = await self._insist(answer)
        if not is_said or len(answer.wanted.strip()) > self._adapter.max_chars:
            data = answer.wanted.strip().encode("utf-8", "replace")
            await _insisted(lambda: self._adapter.send_file(self._chat, "answer.md", data, key=f"{answer.key}-file"))

    async def _insist(self, text: Text) -> bool:
        return await _insisted(lambda: self._show(text))

    async def _finish(self, ended: TurnEnded) -> None:
        await self._finish_answer()
        if self._progress.wanted and self._adapter.can_edit:
            await self._insist(self._progress)
        last = Text()
        if ended.end is End.INTERRUPTED:
            last.wanted = "⏹ stopped"
        elif ended.end is not End.ANSWERED:
            last.wanted = f"⚠️ I stopped ({ended.end.value}). {visible(ended.reason, max_chars=500)}"
        elif not self._said_something:
            last.wanted = ended.answer or "✓ done"
        await self._insist(last)


async def _insisted(sending: Callable[[], Awaitable[None]]) -> bool:
    """Send until it has arrived. False when that is no use."""
    wait = 0.5
    while True:
        try:
            await sending()
            return True
        except Unreachable as error:
            log.info("sending again: %s", error)
            await asyncio.sleep(wait)
            wait = min(wait * 2, _MAX_RETRY_SECONDS)
        except HandrailError as error:
            log.warning("what was to be said cannot be: %s", error)
            return False
