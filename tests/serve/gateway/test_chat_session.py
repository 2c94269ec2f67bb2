"""One chat of the gateway."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from handrail.model_tools import default
from handrail.platforms.base import Message
from handrail.platforms.table import Account
from handrail.serve.gateway.chat_commands import run_command
from handrail.serve.gateway.chat_session import Chat
from handrail.serve.gateway.gateway import Gateway
from handrail.serve.gateway.store import GatewayStore, Where
from handrail.serve.shared_state import Served
from tests.support import trust_plugins


async def _no_reply(_: Where, text: str) -> None:
    raise AssertionError(text)


def test_commands_of_plugins_are_run_and_listed(home: Path) -> None:
    (home / "plugins").mkdir()
    (home / "plugins" / "dice.py").write_text(
        "def register(ctx):\n    ctx.register_command('dice', lambda text: f'rolled {text}', description='Roll dice')\n"
    )
    trust_plugins(home)
    served, store = Served(default()), GatewayStore()
    try:
        hooks, seen = served.app.runtime.hooks, list[Any]()
        hooks.register_hook("pre_command", lambda **payload: seen.append(payload), plugin="noting")
        account = Account("x", "telegram", "", Any)  # type: ignore[arg-type]
        chat = Chat(served, store, account, Where("x", "1"), reply=_no_reply)
        said: Any = (None, chat, None)
        reply = run_command(*said, "/Dice@our_bot 2d6")
        assert callable(reply), "it may block, and must not do so here"
        assert reply() == "rolled 2d6"
        assert "/dice – Roll dice" in str(run_command(*said, "/help"))
        assert "Unknown command /dize" in str(run_command(*said, "/dize"))
        hooks.wait_for_observers()
        typed = {"surface": "gateway", "platform": "telegram", "session_id": ""}
        assert seen == [
            {**typed, "command": "dice", "alias_used": "Dice@our_bot", "args_raw": "2d6"},
            {**typed, "command": "help", "alias_used": "help", "args_raw": ""},
        ]
    finally:
        served.app.runtime.hooks.unregister("noting")
        store.close()
        served.keys.close()


_BOUNCER = """
async def bouncer(event, gateway, **_):
    assert gateway is None and event.source.chat_type == "dm" and event.source.platform == "telegram"
    if event.text.startswith("spam"):
        return {"action": "skip", "reason": f"spam of {event.source.user_id}"}
    if event.text == "help me":
        return {"action": "rewrite", "text": "/status"}

def register(ctx):
    ctx.register_hook("pre_gateway_dispatch", bouncer)
"""


class _Phone:
    """Keeps what is sent to it."""

    max_chars = 4000

    def __init__(self) -> None:
        self.received: list[str] = []

    async def send(self, chat: str, text: str, *, key: str) -> str:
        self.received.append(f"{chat}: {text}")
        return key


def test_a_hook_drops_and_rewrites_messages(home: Path) -> None:
    (home / "plugins" / "bouncer").mkdir(parents=True)
    (home / "plugins" / "bouncer" / "__init__.py").write_text(_BOUNCER)
    trust_plugins(home)
    served, phone = Served(default()), _Phone()
    gateway, account = Gateway(served), Account("x", "telegram", "", phone)  # type: ignore[arg-type]
    gateway._accounts["x"] = account
    try:
        gateway._store.pair("x", "ada", gateway._store.new_code())

        async def write(user: str, *messages: str) -> None:
            for each in messages:
                await gateway._take(account, Message("1", user, each, is_direct=True, is_for_us=True))

        asyncio.run(write("stranger", "spam, spam", "spam"))
        assert phone.received == [], "not even that it does not know them"
        asyncio.run(write("ada", "spam", "help me"))
        assert phone.received == ["1: I am idle.\nSession not started."]
    finally:
        gateway._store.close()
        served.keys.close()


def test_a_platform_without_a_preset_gets_the_core_tools(home: Path) -> None:
    served, store, adapter = Served(default()), GatewayStore(), Any
    try:
        account = Account("x", "carrier_pigeon", "", adapter)  # type: ignore[arg-type]
        chat = Chat(served, store, account, Where("x", "1"), reply=_no_reply)
        assert chat.tools() == sorted(served.app.toolsets.resolve("handrail-cli"))
    finally:
        store.close()
        served.keys.close()
