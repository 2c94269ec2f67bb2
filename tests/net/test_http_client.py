"""Requests to servers that the user configured."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from handrail.net.http_client import NotReached, ask, trusted

from ..support import free_port


def test_no_log_has_the_address_which_may_hold_a_key(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    logging.getLogger("httpx").setLevel(logging.NOTSET)
    with pytest.raises(NotReached):
        asyncio.run(ask("GET", f"http://127.0.0.1:{free_port()}/bot-token", what="it"))
    assert logging.getLogger("httpx").getEffectiveLevel() >= logging.WARNING
    assert "bot-token" not in caplog.text


def test_the_certificates_are_read_once_and_again_when_others_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first = trusted()
    assert trusted() is first
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))
    assert trusted() is not first
