"""One chat: one agent session, one turn at a time. Messages that arrive during a turn are the next turn."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
from collections.abc import Awaitable, Callable, Mapping

from ...agent.events import End, Event, MessageEnded, Notice, TextDelta, ToolEnded, ToolProgress, ToolStarted, TurnEnded
from ...approval.display import visible
from ...errors import HandrailError, SessionNotFound
from ...platforms.base import Unreachable
from ...platforms.table import Account
from ...plugins.api import ChatCommand
from ..shared_state import Served
from .store import GatewayStore, Where

log = logging.getLogger(__name__)
SendText = Callable[[Where, str], Awaitable[None]]
BROKEN = "⚠️ Something broke here; see the server's log."
# For a platform without a toolset preset of its own.
_CORE_PRESET = "handrail-cli"
_MAX_WAITING = 50
_RESTARTED = (
    "[Not from the user] The program was restarted during your work. Check what is already done, and continue. "
    "The last message to you: "
)
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
    """One agent turn: its progress in one message that is edited, its answers in others. A context manager around the turn; the
    final messages are retried until they arrive."""

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
        is_sent = await _retried(lambda: self._show(answer))
        if not is_sent or len(answer.wanted.strip()) > self._adapter.max_chars:
            data = answer.wanted.strip().encode("utf-8", "replace")
            await _retried(lambda: self._adapter.send_file(self._chat, "answer.md", data, key=f"{answer.key}-file"))

    async def _finish(self, ended: TurnEnded) -> None:
        await self._finish_answer()
        if self._progress.wanted and self._adapter.can_edit:
            await _retried(lambda: self._show(self._progress))
        last = Text()
        if ended.end is End.INTERRUPTED:
            last.wanted = "⏹ stopped"
        elif ended.end is not End.ANSWERED:
            last.wanted = f"⚠️ I stopped ({ended.end.value}). {visible(ended.reason, max_chars=500)}"
        elif not self._has_answered:
            last.wanted = ended.answer or "✓ done"
        await _retried(lambda: self._show(last))


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


class Chat:
    """Everything here runs on the server's loop. `reply` sends a text to the chat."""

    def __init__(self, served: Served, store: GatewayStore, account: Account, where: Where, *, reply: SendText) -> None:
        self._served, self._store, self._account, self._reply = served, store, account, reply
        self.where = where
        self._waiting: list[str] = []
        self._current = ""
        self._previous: str | None = None  # the session before the one that the user started
        self._work: asyncio.Task[None] | None = None
        self._is_closing = False

    @property
    def session(self) -> str | None:
        return self._store.session_of(self.where)

    @property
    def needs_reply(self) -> bool:
        """Whether a question is only answered by a reply to it."""
        return self._account.adapter.needs_reply

    @property
    def is_busy(self) -> bool:
        return self._work is not None and not self._work.done()

    def tools(self) -> list[str]:
        return sorted(self._served.app.toolsets.select([self._toolset()]))

    @property
    def plugin_commands(self) -> Mapping[str, ChatCommand]:
        plugins = self._served.app.plugins
        return plugins.contributions.chat_commands if plugins else {}

    def announce(self, command: str, line: str) -> None:
        """Let the hooks know of a slash command, except of those that control a running turn."""
        if not self.is_busy:
            self._served.app.runtime.hooks.announce("gateway", command, line, self.session, self._account.kind)

    def _toolset(self) -> str:
        own = f"handrail-{self._account.kind}"
        return own if own in self._served.app.toolsets.names() else _CORE_PRESET

    def receive(self, text: str) -> bool:
        """Queue a message for the agent. False if too many are waiting already."""
        if len(self._waiting) >= _MAX_WAITING:
            return False
        self._waiting.append(text)
        self._save_unfinished()
        if not self.is_busy:
            self._work = asyncio.create_task(self._take_turns())
        return True

    def _save_unfinished(self) -> None:
        """So that it is resumed after a restart."""
        self._store.set_unfinished(self.where, "\n".join(filter(None, [self._current, *self._waiting])))

    def resume(self, text: str) -> None:
        """Continue after a restart during a turn for this text."""
        self.receive(f"{_RESTARTED}{text.rpartition(_RESTARTED)[2]}")

    async def _take_turns(self) -> None:
        while self._waiting and not self._is_closing:
            self._current, self._waiting = "\n".join(self._waiting), []
            try:
                await self._turn(self._current)
            except HandrailError as error:
                await self._reply(self.where, f"⚠️ {error}")
            except Exception:
                log.exception("a turn in %s failed", self.where)
                await self._reply(self.where, BROKEN)
            if not self._is_closing:
                self._current = ""
                self._save_unfinished()

    async def _turn(self, text: str) -> None:
        turns, kind, toolsets = self._served.turns, self._account.kind, (self._toolset(),)
        try:
            agent = await turns.agent(self.session, toolsets=toolsets, platform=kind)
        except SessionNotFound:  # it was deleted
            agent = await turns.agent(None, toolsets=toolsets, platform=kind)
        if agent.session_id != self.session:
            self._store.set_session(self.where, agent.session_id)
            previous, self._previous = self._previous, None
            if previous is not None:
                await asyncio.to_thread(agent.started_after, previous)
        async with TurnMessages(self._account, self.where.chat) as messages:
            async for event in turns.run(agent, text):
                if self._is_closing and isinstance(event, TurnEnded):
                    return
                await messages.receive(event)

    def stop(self) -> bool:
        """False if there is nothing to stop."""
        self._waiting.clear()
        session = self.session
        return session is not None and self._served.turns.stop(session)

    def start_new_session(self) -> None:
        self.stop()
        self._previous = self.session or self._previous
        self._store.set_session(self.where, None)

    async def close(self) -> None:
        """An unfinished turn continues after the restart."""
        self._is_closing = True
        if self._work is not None and self.is_busy:
            self._work.cancel()
            await asyncio.wait({self._work})
