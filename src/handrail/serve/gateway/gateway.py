"""The gateway: keeps the accounts connected, admits paired users, and passes on their messages and button presses."""

import asyncio
import contextlib
import logging
import uuid
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace

from ...base.rate_limit import RateLimit
from ...config.paths import state_dir
from ...errors import ConfigError, HandrailError
from ...platforms.base import ButtonPress, Message, Unreachable
from ...platforms.table import Account, accounts
from ..shared_state import Served
from . import texts
from .chat_commands import run_command
from .chat_session import BROKEN, Chat
from .questions import Questions
from .store import STORE_NAME, GatewayStore, Where

log = logging.getLogger(__name__)
_MIN_WAIT_SECONDS, _MAX_WAIT_SECONDS = 0.5, 10.0
# After this many wrong codes, silence for a while: a code cannot be guessed.
_MAX_TRIES, _TRIES_SECONDS = 5, 3600.0
_PLUGIN_SECONDS = 60.0  # for a slash command of a plugin
_CODE_CHARS = 10
_HOOK = "pre_gateway_dispatch"


class Gateway:
    """Works while `running` is open."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self._accounts = {each.name: each for each in accounts(served.app.config.gateway.accounts)}
        self._store = GatewayStore(state_dir() / STORE_NAME)
        self._questions = Questions(served, self._store, self._accounts)
        self._chats: dict[Where, Chat] = {}
        self._tries = RateLimit(_MAX_TRIES, _TRIES_SECONDS)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """While this is open, users are served."""
        tasks = [asyncio.create_task(self._keep(account)) for account in self._accounts.values()]
        tasks += [asyncio.create_task(self._questions.run(name)) for name in self._accounts]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await asyncio.gather(*(chat.close() for chat in self._chats.values()))
            self._store.close()

    async def _keep(self, account: Account) -> None:
        """Connect, and reconnect whenever the connection is lost, until cancelled."""
        wait, is_first = _MIN_WAIT_SECONDS, True
        while True:
            try:
                await account.adapter.connect()
                async for cursor, events in account.adapter.receive(self._store.cursor(account.name)):
                    wait = _MIN_WAIT_SECONDS
                    # Before the events: a message that crashes us must not come again at every start.
                    self._store.set_cursor(account.name, cursor)
                    unfinished, is_first = self._store.unfinished(account.name) if is_first else [], False
                    for chat, text in unfinished:
                        self._chat(account, chat).resume(text)
                    for event in events:
                        await self._take(account, event)
            except ConfigError as error:
                log.error("%s is not connected: %s", account.name, error)  # noqa: TRY400  the text says what to do
                return
            except HandrailError as error:
                log.warning("%s: %s; retrying", account.name, error)
            except Exception:
                log.exception("%s broke; retrying", account.name)
            finally:
                with contextlib.suppress(Exception):
                    await account.adapter.disconnect()
            await asyncio.sleep(wait)
            wait = min(wait * 2, _MAX_WAIT_SECONDS)

    async def _take(self, account: Account, event: Message | ButtonPress) -> None:
        where = Where(account.name, event.chat)
        try:
            if isinstance(event, Message):
                if event.reply_to:
                    await self._questions.catch_up(where, event.reply_to)
                taken = await self._after_hooks(account, event)
                received = "" if taken is None else self._receive(account, taken)
                work = received if callable(received) else None
                reply = await asyncio.wait_for(asyncio.to_thread(work), _PLUGIN_SECONDS) if work else str(received)
            elif self._store.is_paired(account.name, event.user):
                reply = await self._questions.pressed(where, event.message, event.decision, event.user)
            else:
                reply = ""
        except HandrailError as error:
            reply = f"⚠️ {error}"
        except TimeoutError:
            reply = f"⚠️ the command took more than {_PLUGIN_SECONDS:g} s"
        except Exception:
            log.exception("an event in %s failed", where)  # it must not stop the next ones
            reply = BROKEN
        if reply:
            await self._reply(where, reply)

    async def _after_hooks(self, account: Account, message: Message) -> Message | None:
        """The message as the hooks leave it; None if one of them drops it."""
        hooks, kind = self._served.app.runtime.hooks, "dm" if message.is_direct else "group"
        if not hooks.implementations(_HOOK):
            return message
        source = SimpleNamespace(platform=account.kind, chat_id=message.chat, user_id=message.user, chat_type=kind)
        event = SimpleNamespace(text=message.text, source=source, internal=False)
        for answer in await asyncio.to_thread(hooks.invoke, _HOOK, event=event):
            match answer:
                case {"action": "skip"}:
                    return None
                case {"action": "rewrite", "text": str(text)}:
                    return message._replace(text=text)
                case {"action": "allow"}:
                    break
        return message

    def _receive(self, account: Account, message: Message) -> str | Callable[[], str]:
        """The immediate reply to a message, if any; or what gets it, on another thread."""
        if not (message.is_direct or message.is_for_us):
            return ""
        if not self._store.is_paired(account.name, message.user):
            return self._pair(account, message) if message.is_direct else ""
        text, chat = message.text.strip(), self._chat(account, message.chat)
        if not text:
            return ""
        if text.startswith("/"):
            return run_command(self._questions, chat, message, text)
        is_queued = chat.receive(text if message.is_direct else f"{message.user}: {text}")
        return "" if is_queued else "Too many messages are waiting; let me finish, or /stop."

    def _pair(self, account: Account, message: Message) -> str:
        if not self._tries.allows(f"{account.name} {message.user}"):
            return ""
        words = message.text.split()
        is_code = len(words) in (1, 2) and len(words[-1]) == _CODE_CHARS
        if is_code and self._store.pair(account.name, message.user, words[-1]):
            log.info("%s is paired with %s", message.user, account.name)
            return f"Welcome. I work for you from now on.\n{texts.HELP}"
        return texts.STRANGER

    def _chat(self, account: Account, chat: str) -> Chat:
        where = Where(account.name, chat)
        return self._chats.setdefault(where, Chat(self._served, self._store, account, where, reply=self._reply))

    async def _reply(self, where: Where, text: str) -> None:
        """Send a text of our own, without retries: a user who gets no reply asks again."""
        adapter, key = self._accounts[where.adapter].adapter, uuid.uuid4().hex
        try:
            if len(text) > adapter.max_chars:
                await adapter.send_file(where.chat, "question.txt", text.encode("utf-8", "replace"), key=key)
            else:
                await adapter.send(where.chat, text, key=key)
        except Unreachable as error:
            log.info("%s: %s", where.adapter, error)
        except HandrailError as error:
            log.warning("%s: %s", where.adapter, error)
