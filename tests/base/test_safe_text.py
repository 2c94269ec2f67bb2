"""Text that a model may see: nothing in it passes for the conversation's own structure, and no secret leaks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.base.safe_text import MAX_ERROR_CHARS, mask_secrets, safe_error, well_formed
from tests.support import costs_less_than

OPEN = "<"


@pytest.mark.parametrize(
    "tag",
    [
        "<system>",
        "</system>",
        "<SYSTEM>",
        "< system >",
        '<tool_call id="1">',
        "</tool_result>",
        "<function_calls>",
        '<invoke name="terminal">',
        "<|im_start|>",
        "<|endoftext|>",
        "<![CDATA[",
        "]]>",
        "```",
        "```json",
        "~~~",
        OPEN + "antml:function_calls>",
        OPEN + "/antml:invoke>",
    ],
)
def test_what_looks_like_the_conversations_own_structure_is_gone(tag: str) -> None:
    assert safe_error(f"before {tag} after") == "before  after"


@pytest.mark.parametrize(
    "text",
    ["<sys<system>tem>", "<<|x|>|im_start|>", "``<system>`", "<tool_<![CDATA[call>", "<sys\x00tem>", "<sys\u200btem>"],
)
def test_taking_one_out_does_not_put_another_together(text: str) -> None:
    assert safe_error(f"a {text} b") == "a  b"


@pytest.mark.parametrize(
    "text", ["a < b and b > c", "List<int> x", "see `code` here", "<path/to/file>", "x | y", "2 << 3"]
)
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert safe_error(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "\x00",
        "\x07",
        "\x1b[31m",
        "\x1b]0;title\x07",
        "\r",
        "\x85",
        "\u202e",
        "\u200b",
        "\ufeff",
        "\u2066",
        "\U000e0041",
    ],
)
def test_controls_and_invisible_characters_are_gone(text: str) -> None:
    assert safe_error(f"a{text}b") == "ab"


def test_newlines_and_tabs_stay() -> None:
    assert safe_error("a\n\tb") == "a\n\tb"


def test_the_length_is_capped() -> None:
    assert len(safe_error("x" * 1_000_000)) == MAX_ERROR_CHARS
    assert safe_error("x" * MAX_ERROR_CHARS) == "x" * MAX_ERROR_CHARS


SECRETS = {
    "openai": "sk-proj-" + "aB3" * 12,
    "github": "ghp_" + "aB3" * 12,
    "github fine-grained": "github_pat_" + "aB3" * 12,
    "gitlab": "glpat-" + "aB3" * 8,
    "slack": "xoxb-123456789012-" + "aB3" * 6,
    "hugging face": "hf_" + "aB3" * 11,
    "aws": "AKIA" + "ABCD1234" * 2,
    "google": "AIza" + "aB3" * 12,
    "jwt": "eyJ" + "aB3" * 8 + ".eyJ" + "aB3" * 8 + "." + "aB3" * 8,
    "private key": "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----",
}


@pytest.mark.parametrize("secret", SECRETS.values(), ids=SECRETS.keys())
def test_what_looks_like_a_secret_is_masked(secret: str) -> None:
    text = safe_error(f"the key '{secret}' was refused")
    assert secret not in text
    assert "[secret]" in text
    assert "was refused" in text


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("Authorization: Bearer abcdefghijklmnop", "abcdefghijklmnop"),
        ("Authorization: Basic dXNlcjpwYXNzd29yZA==", "dXNlcjpwYXNzd29yZA"),
        ("postgres://ada:hunter22@db.example/x", "hunter22"),
    ],
)
def test_secrets_are_known_by_where_they_stand(text: str, secret: str) -> None:
    assert secret not in safe_error(text)


@pytest.mark.parametrize(
    "name", ["MY_API_KEY", "GITHUB_TOKEN", "DB_PASSWORD", "CLIENT_SECRET", "AWS_SECRET_ACCESS_KEY", "APIKEY"]
)
def test_the_processs_own_secrets_are_masked_whatever_they_look_like(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "plain words as a key")
    assert mask_secrets("refused: plain words as a key!") == "refused: [secret]!"


def test_other_variables_are_not_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDITOR_NAME", "some editor name")
    monkeypatch.setenv("SHORT_TOKEN", "abc")
    assert mask_secrets("some editor name abc") == "some editor name abc"


@pytest.mark.parametrize(
    "text",
    ["<user" * 3_000 + ">" * 3_000, "<" * 16_000, "`" * 16_000, "<|" * 8_000, "sk-" * 5_000, "-----BEGIN " * 1_500],
)
def test_no_text_takes_long(text: str) -> None:
    with costs_less_than(1):
        safe_error(text)


@given(st.text(st.characters(codec=None, exclude_categories=())))
def test_any_text_becomes_well_formed_and_stays_what_it_was_where_it_could(text: str) -> None:
    fixed = well_formed(text)
    fixed.encode()
    assert well_formed(fixed) == fixed
    try:
        text.encode()
    except UnicodeEncodeError:
        assert fixed != text
    else:
        assert fixed == text


def test_only_the_lone_half_is_replaced() -> None:
    assert well_formed("a\ud800b\udfffc") == "a\ufffdb\ufffdc"
    assert well_formed("a\ud800") == "a\ufffd"


@given(st.text(st.sampled_from("<>/|`~![]CDATAsystemuser \n\x00\u200b")))
def test_a_safe_text_is_safe_already(text: str) -> None:
    once = safe_error(text)
    assert safe_error(once) == once
