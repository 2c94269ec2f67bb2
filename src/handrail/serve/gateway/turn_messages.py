"""One agent turn in a chat: its progress in one message that is edited, its answers in others."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
from collections.abc import Awaitable, Callable

from ...agent.events import End, Event, MessageEnded, Notice, TextDelta, ToolEnded, ToolProgress, ToolStarted, TurnEnded
from ...approval.display import visible
from ...errors import HandrailError
from ...platforms.base import Unreachable
from ...platforms.table import Account

log = logging.getLogger(__name__)

# Platforms accept about one edit per second.
_EDIT_SECONDS = 1.0
_SHOWN_LINES = 12
_HEAD_CHARS = 1_000
_MAX_RETRY_SECONDS = 5.0


class Text:
    """One growing message: the text it should show, the text it shows, and the text it was first sent with."""

    def __init__(self) -> None:
        self.wanted, self.shown, self.first, self.message = "", "", "", ""
        self.key = uuid.uuid4().hex


class TurnMessages:
    """A context manager around a turn. The final messages are retried until they arrive."""

    def __init__(self, account: Account, chat: str) -> None:
        self._adapter, self._chat = account.adapter, chat
        self._progress, self._answer = Text(), Text()
        self._calls: dict[str, tuple[str, str]] = {}  # what was called, and its state
        self._showing = asyncio.Lock()
        self._changed = asyncio.Event()
        self._has_answered = False

    async def __aenter__(self) -> TurnMessages:
        self._writer = asyncio.create_task(self._write())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._writer.cancel()
        await asyncio.wait({self._writer})

    async def receive(self, event: Event) -> None:
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
                    with contextlib.suppress(HandrailError):  # the next edit, or the end, shows it
                        await self._show(text)
            await asyncio.sleep(_EDIT_SECONDS)

    async def _show(self, text: Text) -> None:
        async with self._showing:  # the writer and the end may both want to send the same message
            wanted = text.wanted.strip()
            if len(wanted) > self._adapter.max_chars:
                wanted = wanted[:_HEAD_CHARS] + " …"
            if not wanted or wanted == text.shown:
                return
            if not text.message:
                # One key is one text: an earlier attempt may have arrived, and only its answer been lost.
                text.first = text.first or wanted
                text.message = await self._adapter.send(self._chat, text.first, key=text.key)
                text.shown = text.first
            if text.shown != wanted:
                await self._adapter.edit(self._chat, text.message, wanted)
                text.shown = wanted

    async def _finish_answer(self) -> None:
        """An answer of the model is complete: send all of it. The next answer is another message."""
        answer, self._answer = self._answer, Text()
        if not answer.wanted.strip():
            return
        self._has_answered = True
        is_sent = await self._deliver(answer)
        if not is_sent or len(answer.wanted.strip()) > self._adapter.max_chars:
            data = answer.wanted.strip().encode("utf-8", "replace")
            await _retried(lambda: self._adapter.send_file(self._chat, "answer.md", data, key=f"{answer.key}-file"))

    async def _deliver(self, text: Text) -> bool:
        return await _retried(lambda: self._show(text))

    async def _finish(self, ended: TurnEnded) -> None:
        await self._finish_answer()
        if self._progress.wanted and self._adapter.can_edit:
            await self._deliver(self._progress)
        last = Text()
        if ended.end is End.INTERRUPTED:
            last.wanted = "⏹ stopped"
        elif ended.end is not End.ANSWERED:
            last.wanted = f"⚠️ I stopped ({ended.end.value}). {visible(ended.reason, max_chars=500)}"
        elif not self._has_answered:
            last.wanted = ended.answer or "✓ done"
        await self._deliver(last)


async def _retried(sending: Callable[[], Awaitable[None]]) -> bool:
    """Retry until it has arrived. False if a retry is pointless."""
    wait = 0.5
    while True:
        try:
            await sending()
            return True
        except Unreachable as error:
            log.info("retrying: %s", error)
            await asyncio.sleep(wait)
            wait = min(wait * 2, _MAX_RETRY_SECONDS)
        except HandrailError as error:
            log.warning("a message cannot be sent: %s", error)
            return False
