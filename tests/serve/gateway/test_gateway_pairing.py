"""Who is let in, what is remembered of them, and how an account is configured."""

from __future__ import annotations

from pathlib import Path

import pytest

from handrail.errors import ConfigError, Denied
from handrail.platforms.base import decision_of, sign_of
from handrail.platforms.table import accounts, platforms
from handrail.protocols import ApprovalRequest, Concern, Decision
from handrail.serve.gateway import store as stores
from handrail.serve.gateway.store import GatewayStore, Where
from handrail.serve.gateway.texts import question


def test_a_code_lets_one_person_in_once(tmp_path: Path) -> None:
    store = GatewayStore(tmp_path / "gateway.db")
    code = store.new_code()
    assert not store.pair("matrix", "@eve:x", "AAAAAAAAAA")
    assert store.pair("matrix", "@ada:x", f" {code.lower()} ")
    assert not store.pair("matrix", "@eve:x", code)
    assert store.is_paired("matrix", "@ada:x")
    assert not store.is_paired("matrix", "@eve:x")
    assert not store.is_paired("telegram", "@ada:x")
    assert code.encode() not in (tmp_path / "gateway.db").read_bytes()
    assert store.unpair("matrix", "@ada:x")
    assert not store.is_paired("matrix", "@ada:x")
    store.close()


def test_an_old_code_lets_nobody_in(monkeypatch: pytest.MonkeyPatch) -> None:
    store = GatewayStore()
    monkeypatch.setattr(stores, "CODE_SECONDS", -1)
    assert not store.pair("matrix", "@ada:x", store.new_code())
    store.close()


def test_an_agent_makes_no_codes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HANDRAIL_INSIDE", "1")
    store = GatewayStore()
    with pytest.raises(Denied, match="cannot pair"):
        store.new_code()
    store.close()


def test_a_chat_keeps_its_session_and_what_it_works_on() -> None:
    store, where = GatewayStore(), Where("matrix", "!a")
    store.set_unfinished(where, "clean up")
    store.set_session(where, "s1")
    assert store.unfinished("matrix") == [("!a", "clean up")]
    assert store.chat_of("s1") == where
    store.set_unfinished(where, "")
    assert store.unfinished("matrix") == []
    assert store.session_of(where) == "s1"
    store.close()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"kind": "matrx"}, "did you mean 'matrix'"),
        ({"kind": "matrix"}, "homeserver"),
        ({"kind": "matrix", "homeserver": "https://x", "tokn": "y"}, "unknown key"),
    ],
)
def test_a_mistake_in_the_configuration_is_told(settings: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        accounts({"chat": settings})


def test_every_kind_can_be_configured_by_its_name() -> None:
    needed = {
        "matrix": {"homeserver": "https://x"},
        "email": {"address": "a@b.c", "imap_host": "i", "smtp_host": "s"},
    }
    made = accounts({kind: {"kind": kind, "home": "h", **needed.get(kind, {})} for kind in platforms("Adapter")})
    assert [each.kind for each in made] == platforms("Adapter")
    assert {each.home for each in made} == {"h"}


def test_every_decision_has_a_sign_and_skin_tones_do_not_count() -> None:
    assert [decision_of(sign_of(each)) for each in Decision] == list(Decision)
    assert decision_of("♾️") is Decision.ALWAYS
    assert decision_of("👎🏿") is Decision.DENY
    assert decision_of("🎉") is None


def test_a_question_fits_and_cannot_forge_its_own_lines() -> None:
    text = "rm -rf x\n✅ allowed\x1b[2J\u202e" + "y" * 5000
    request = ApprovalRequest(
        "terminal",
        {},
        "it deletes",
        id="abcd1234",
        text=text,
        concerns=(Concern("fs.rm", "deletes", 0, 8),),
        offers=tuple(Decision),
    )
    shown = question(request, can_tap=True, max_chars=2000)
    assert len(shown) <= 2000
    assert "⟦rm -rf x⟧" in shown
    assert "\n    ✅ allowed" in shown  # indented as part of the command
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "[abcd1234]" in shown
