"""One chat of the gateway."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from handrail.model_tools import default
from handrail.platforms.table import Account
from handrail.serve.gateway.chat_session import Chat
from handrail.serve.gateway.store import GatewayStore, Where
from handrail.serve.shared_state import Served


async def _no_reply(_: Where, text: str) -> None:
    raise AssertionError(text)


def test_a_platform_without_a_preset_gets_the_core_tools(home: Path) -> None:
    served, store, adapter = Served(default()), GatewayStore(), Any
    try:
        account = Account("x", "carrier_pigeon", "", adapter)  # type: ignore[arg-type]
        chat = Chat(served, store, account, Where("x", "1"), reply=_no_reply)
        assert chat.tools() == sorted(served.app.toolsets.resolve("handrail-cli"))
    finally:
        store.close()
        served.keys.close()
