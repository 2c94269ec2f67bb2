"""What is trusted, is trusted as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from handrail.config.trust import Trust, digest
from handrail.errors import ConfigError
from tests.support import in_threads


def test_trust_is_for_one_kind_one_place_and_one_content(home: Path) -> None:
    trust = Trust()
    trust.trust("plugin", "/p", "abc")
    assert Trust().is_trusted("plugin", "/p", "abc")
    assert not trust.is_trusted("plugin", "/p", "abd")
    assert not trust.is_trusted("mcp", "/p", "abc")
    assert not trust.is_trusted("plugin", "/q", "abc")


def test_trusting_again_replaces_what_was_trusted_in_that_place(home: Path) -> None:
    trust = Trust()
    trust.trust("plugin", "/p", "old")
    trust.trust("plugin", "/p", "new")
    assert not trust.is_trusted("plugin", "/p", "old")
    assert list(trust.read().values()) == ["new"]


def test_trust_can_be_taken_back(home: Path) -> None:
    trust = Trust()
    trust.trust("plugin", "/p", "abc")
    assert trust.revoke("plugin", "/p")
    assert not trust.revoke("plugin", "/p")
    assert not trust.is_trusted("plugin", "/p", "abc")


def test_a_damaged_file_trusts_nothing_and_is_not_overwritten(home: Path) -> None:
    trust = Trust()
    trust.trust("plugin", "/p", "abc")
    trust.path.write_text("[{")
    assert not trust.is_trusted("plugin", "/p", "abc")
    with pytest.raises(ConfigError, match="damaged"):
        trust.trust("plugin", "/p", "abc")
    assert trust.path.read_text() == "[{"


def test_many_writers_lose_nothing(home: Path) -> None:
    in_threads(20, lambda number: Trust().trust("plugin", f"/p{number}", "abc"))
    assert len(Trust().read()) == 20


def test_the_digest_tells_names_and_contents_apart() -> None:
    words = [digest(files) for files in ({"a": b"bc"}, {"ab": b"c"}, {"a": b"b", "c": b""}, {"a": b"bd"}, {})]
    assert len(set(words)) == len(words)
    assert digest({"a": b"1", "b": b"2"}) == digest({"b": b"2", "a": b"1"})
