"""The gateway: keeps the accounts connected, lets in who is paired, and hands on what they say and tap."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
import uuid
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from ...config.paths import state_dir
from ...errors import ConfigError, HandrailError
from ...platforms.adapter import Pressed, Said, Unreachable
from ...platforms.adapter_table import Account, accounts
from . import chat_commands, texts
from .chat_session import Chat
from .questions import Questions
from .store import STORE_NAME, GatewayStore, Where

if TYPE_CHECKING:
    from ..shared_state import Served

log = logging.getLogger(__name__)

_FIRST_WAIT_SECONDS, _MAX_WAIT_SECONDS = 0.5, 10.0
# So many wrong codes, then silence for a while: a code cannot be guessed.
_MAX_TRIES, _TRIES_SECONDS = 5, 3600.0
_MAX_STRANGERS = 10_000
_CODE_CHARS = 10


class Gateway:
    """`running` keeps it going."""

    def __init__(self, served: Served) -> None:
        self.served = served
        self.accounts = {each.name: each for each in accounts(served.here.config.gateway.accounts)}
        self.store = GatewayStore(state_dir() / STORE_NAME)
        self.questions = Questions(served, self.store, self.accounts)
        self._chats: dict[Where, Chat] = {}
        self._tries: dict[tuple[str, str], list[float]] = {}

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """While this is open, people are served."""
        tasks = [asyncio.create_task(self._keep(account)) for account in self.accounts.values()]
        tasks += [asyncio.create_task(self.questions.run(name)) for name in self.accounts]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await asyncio.gather(*(chat.close() for chat in self._chats.values()))
            self.store.close()

    async def _keep(self, account: Account) -> None:
        """Connect, and again whenever the connection is lost, until cancelled."""
        wait, is_first = _FIRST_WAIT_SECONDS, True
        while True:
            try:
                await account.adapter.connect()
                async for place, events in account.adapter.receive(self.store.place(account.name)):
                    wait = _FIRST_WAIT_SECONDS
                    # Before the events: a message that breaks us must not come again with every start.
                    self.store.set_place(account.name, place)
                    if is_first:
                        is_first = False
                        self._go_on(account)
                    for event in events:
                        await self._take(account, event)
            except ConfigError as error:
                log.error("%s is not connected: %s", account.name, error)  # noqa: TRY400  the text says what to do
                return
            except HandrailError as error:
                log.warning("%s: %s; trying again", account.name, error)
            except Exception:
                log.exception("%s broke; trying again", account.name)
            finally:
                with contextlib.suppress(Exception):
                    await account.adapter.disconnect()
            await asyncio.sleep(wait)
            wait = min(wait * 2, _MAX_WAIT_SECONDS)

    def _go_on(self, account: Account) -> None:
        for chat, text in self.store.unfinished(account.name):
            self._chat(account, chat).go_on(text)

    async def _take(self, account: Account, event: Said | Pressed) -> None:
        where = Where(account.name, event.chat)
        try:
            if isinstance(event, Said):
                said = self._heard(account, event)
            elif self.store.is_paired(account.name, event.person):
                said = await self.questions.tapped(where, event.message, event.decision, event.person)
            else:
                said = ""
        except HandrailError as error:
            said = f"⚠️ {error}"
        except Exception:
            log.exception("what was said in %s broke something", where)  # and must not take the next with it
            said = "⚠️ Something broke here; the server's log says what."
        if said:
            await self.say(where, said)

    def _heard(self, account: Account, said: Said) -> str:
        """What is answered at once to what somebody wrote."""
        if not (said.is_direct or said.is_for_us):
            return ""
        if not self.store.is_paired(account.name, said.person):
            return self._pair(account, said) if said.is_direct else ""
        text, chat = said.text.strip(), self._chat(account, said.chat)
        if not text:
            return ""
        if text.startswith("/"):
            return chat_commands.obey(self, chat, said.person, text)
        heard = chat.hear(text if said.is_direct else f"{said.person}: {text}")
        return "" if heard else "Too much waits here already; let me finish, or /stop."

    def _pair(self, account: Account, said: Said) -> str:
        who, now = (account.name, said.person), time.monotonic()
        tries = [each for each in self._tries.get(who, []) if each > now - _TRIES_SECONDS]
        if len(self._tries) > _MAX_STRANGERS:
            self._tries.clear()
        self._tries[who] = tries
        if len(tries) >= _MAX_TRIES:
            return ""
        words = said.text.split()
        if len(words) in (1, 2) and len(words[-1]) == _CODE_CHARS and self.store.pair(*who, words[-1]):
            log.info("%s is paired with %s", said.person, account.name)
            return f"Welcome. From now on I work for you.\n{texts.HELP}"
        tries.append(now)
        return texts.stranger()

    def _chat(self, account: Account, chat: str) -> Chat:
        where = Where(account.name, chat)
        return self._chats.setdefault(where, Chat(self, account, where))

    async def say(self, where: Where, text: str) -> None:
        """Something of our own. It is not said again when it did not arrive: whoever asked will ask again."""
        try:
            await self.accounts[where.adapter].adapter.send(where.chat, text, key=uuid.uuid4().hex)
        except Unreachable as error:
            log.info("%s: %s", where.adapter, error)
        except HandrailError as error:
            log.warning("%s: %s", where.adapter, error)
