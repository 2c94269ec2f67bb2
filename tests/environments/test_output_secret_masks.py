"""Known secret values are hidden in output, wherever it was cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.environments.output import MaskedStream, Masker, secret_values

from ..support import costs_less_than


@pytest.mark.parametrize(
    ("name", "value", "hidden"),
    [
        ("OPENAI_API_KEY", "sk-proj-1234567890", {"sk-proj-1234567890"}),
        ("DB_PASSWORD", "correct horse battery", {"correct horse battery"}),
        ("GITHUB_TOKEN", "short", set()),
        ("SECRET_BACKEND", "production", set()),
        ("SECRET_ID", "a1b2c3d4e5f6g7", {"a1b2c3d4e5f6g7"}),
        ("HOME", "/home/someone1", set()),
        ("SSH_AUTH_SOCK", "/tmp/ssh-XXXX/agent.1", set()),
        ("TLS_PRIVATE_KEY", "-----BEGIN KEY-----\nMIIB0123456789ab\nx\n", {"-----BEGIN KEY-----", "MIIB0123456789ab"}),
    ],
)
def test_a_secret_is_known_by_its_name(name: str, value: str, hidden: set[str]) -> None:
    assert secret_values({name: value}) == hidden


def test_the_longer_of_two_values_goes_first() -> None:
    assert Masker({"12345678", "1234567890"})("a 1234567890 b 12345678") == "a [secret] b [secret]"


def test_nothing_to_hide_costs_nothing() -> None:
    text = "x" * 100
    assert Masker(())(text) is text
    assert MaskedStream(Masker(())).feed(text) is text


@given(
    st.lists(st.text("ab", min_size=2, max_size=5), min_size=1, max_size=3),
    st.lists(st.text("abc", max_size=8), max_size=12),
)
def test_a_value_is_hidden_wherever_the_text_was_cut(values: list[str], pieces: list[str]) -> None:
    stream = MaskedStream(Masker(values))
    shown = "".join(stream.feed(piece) for piece in pieces) + stream.finish()
    left = shown.replace("[secret]", "\0")
    assert not [value for value in values if value in left]
    assert all(part in "".join(pieces) for part in left.split("\0"))


def test_much_text_costs_little() -> None:
    stream = MaskedStream(Masker({f"secret-value-{number}" for number in range(20)}))
    with costs_less_than(3):
        for _ in range(256):
            stream.feed("some text without any value in it\n" * 1000)
