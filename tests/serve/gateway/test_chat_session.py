"""One chat of the gateway."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from handrail.model_tools import default
from handrail.platforms.table import Account
from handrail.serve.gateway.chat_commands import run_command
from handrail.serve.gateway.chat_session import Chat
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
        account = Account("x", "telegram", "", Any)  # type: ignore[arg-type]
        chat = Chat(served, store, account, Where("x", "1"), reply=_no_reply)
        said: Any = (None, chat, None)
        reply = run_command(*said, "/Dice@our_bot 2d6")
        assert callable(reply), "it may block, and must not do so here"
        assert reply() == "rolled 2d6"
        assert "/dice – Roll dice" in str(run_command(*said, "/help"))
        assert "Unknown command /dize" in str(run_command(*said, "/dize"))
    finally:
        store.close()
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
