"""The table of platforms: found by their files, and light to list."""

from __future__ import annotations

import subprocess
import sys

import pytest

from handrail.errors import ConfigError
from handrail.platforms.table import accounts, platforms, target_of

_LIST_ALL = """
import sys
from handrail.platforms.table import platforms
platforms("Target"), platforms("Adapter")
heavy = {"slack_sdk", "discord", "aiohttp", "apprise", "httpx"} & set(sys.modules)
assert not heavy, heavy
"""


def test_listing_platforms_imports_no_library() -> None:
    subprocess.run([sys.executable, "-c", _LIST_ALL], check=True)


def test_a_platform_sends_or_receives_or_both() -> None:
    assert set(platforms("Adapter")) < set(platforms("Target"))


@pytest.mark.parametrize("kind", ["webhook", "base", "../errors", ""])
def test_what_cannot_receive_is_not_an_account(kind: str) -> None:
    with pytest.raises(ConfigError, match="is not a kind of account"):
        accounts({"chat": {"kind": kind}})


@pytest.mark.parametrize("kind", ["table", "../errors", None])
def test_what_cannot_send_is_not_a_target(kind: str | None) -> None:
    with pytest.raises(ConfigError, match="is not a kind of target"):
        target_of("a", {"a": {"kind": kind}})
