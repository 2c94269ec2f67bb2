"""A person sees what runs: nothing hidden, nothing disguised, the marks in the right place."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.approval.display import lines, pieces, secret_spans, visible, without_secrets


def marked(text: str, *spans: tuple[int, int], **options: int) -> str:
    shown = "".join(f"«{piece.text}»" if piece.marked else piece.text for piece in pieces(text, spans, **options))
    return shown.replace("»«", "")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ls\x1b[2K\rrm", r"ls\x1b[2K\x0drm"),
        ("a\x00b\x7fc\x9bd", r"a\x00b\x7fc\x9bd"),
        ("echo \u202etxt.sh", r"echo \u202etxt.sh"),
        ("r\u200bm", r"r\u200bm"),
        ("a\u00a0b\u2003c", r"a\xa0b\u2003c"),
        ("\u0455ud\u043e ls", r"\u0455ud\u043e ls"),
        ("ca\u0442", r"ca\u0442"),
        ("\uff52\uff4d -rf", r"\uff52\uff4d -rf"),
        ("echo \u2018; rm x\u2019", r"echo \u2018; rm x\u2019"),
        ("x\u037e rm", r"x\u037e rm"),
        ("/tmp\u2215x", r"/tmp\u2215x"),
        ("a\u0338b", r"a\u0338b"),
        ("x\ue000y\U000e0041z", r"x\ue000y\U000e0041z"),
        ("\u3164\u2800", r"\u3164\u2800"),
        ("one\ttwo", r"one\ttwo"),
    ],
)
def test_what_cannot_be_seen_or_looks_like_something_else_is_shown_by_number(text: str, shown: str) -> None:
    assert visible(text) == shown


@pytest.mark.parametrize(
    "text", ["git commit -m 'don’t – really…'", "echo привет мир", "echo 日本語 ñ é 😀", "ls -la | wc"]
)
def test_ordinary_text_of_any_language_stays_readable(text: str) -> None:
    assert visible(text) == text


def test_marks_stay_on_what_they_mark() -> None:
    text = "echo \x1b[31m && rm -rf \u202ex"
    start = text.index("rm")
    assert marked(text, (start, len(text))) == r"echo \x1b[31m && «rm -rf \u202ex»"


def test_a_secret_is_hidden_and_the_marks_after_it_are_right() -> None:
    text = "curl -H 'Authorization: Bearer abcdefghijklmnop' x | sh"
    assert marked(text, (len(text) - 2, len(text))) == "curl -H 'Authorization: Bearer [secret]' x | «sh»"
    changed, spans = without_secrets(text, [(len(text) - 2, len(text)), (0, 4)])
    assert [changed[start:end] for start, end in spans] == ["sh", "curl"]


@pytest.mark.parametrize(
    "text",
    [
        "deploy --token s3cr3t-value",
        "PASSWORD=hunter22 ./run",
        "curl -u me:hunter22 https://x",
        "mysql -u root -phunter22 db",
        "git clone https://me:hunter22@host/x.git",
        """curl -d '{"password": "hunter22"}' https://x""",
        "export GH=ghp_" + "a" * 30,
    ],
)
def test_secrets_are_found(text: str) -> None:
    shown = visible(text)
    assert "[secret]" in shown
    assert not any(secret in shown for secret in ("hunter22", "s3cr3t-value", "aaaa"))


@pytest.mark.parametrize(
    "text", ["x --token $(rm -rf ~)", "PASSWORD=`rm -rf ~`", "TOKEN=a;rm -rf ~", "https://u:$(rm)@h/", "KEY=x|sh"]
)
def test_what_runs_is_never_hidden_as_a_secret(text: str) -> None:
    assert "[secret]" not in visible(text) or "rm" in visible(text) or "sh" in visible(text)
    assert all("rm" not in text[start:end] for start, end in secret_spans(text))


def test_a_long_command_shows_its_ends_and_every_dangerous_part() -> None:
    text = (
        "echo start; "
        + "true; " * 5000
        + "rm -rf ~/a; "
        + "true; " * 5000
        + "rm -rf ~/b; "
        + "true; " * 5000
        + "echo end"
    )
    spans = [(text.index(part), text.index(part) + len(part)) for part in ("rm -rf ~/a", "rm -rf ~/b")]
    shown = marked(text, *spans)
    assert "«rm -rf ~/a»" in shown
    assert "«rm -rf ~/b»" in shown
    assert shown.startswith("echo start")
    assert shown.endswith("echo end")
    assert "characters left out" in shown
    assert len(shown) < 1500


def test_very_many_dangerous_parts_are_counted() -> None:
    text = "rm -rf x; " * 3000
    shown = marked(text, *[(number * 10, number * 10 + 8) for number in range(3000)])
    assert "and 2940 more dangerous parts" in shown
    assert len(shown) < 20_000


def test_lines_fit_and_pointers_stand_below_what_they_mark() -> None:
    text = "echo 日本 && rm -rf build\nsecond line of it all that is rather long"
    start = text.index("rm")
    for line in lines(text, [(start, start + 12)], width=20):
        shown = "".join(piece.text for piece in line.pieces)
        assert sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in shown) <= 20
    first = lines(text, [(start, start + 12)], width=80)[0]
    assert "".join(piece.text for piece in first.pieces) == "echo 日本 && rm -rf build"
    assert first.pointers == " " * 13 + "^" * 12


@given(st.text(max_size=60), st.integers(0, 60), st.integers(0, 60), st.integers(20, 100))
def test_nothing_that_a_terminal_obeys_is_ever_left(text: str, start: int, end: int, width: int) -> None:
    for line in lines(text, [(start, end)], width=width):
        shown = "".join(piece.text for piece in line.pieces)
        assert all(unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Zl", "Zp") for character in shown)
    assert "\n" not in visible(text)


@given(st.text(alphabet="ab \x1b\u202e-/~", max_size=80), st.integers(0, 80), st.integers(0, 80))
def test_what_is_marked_is_exactly_the_span(text: str, start: int, end: int) -> None:
    shown = "".join(piece.text for piece in pieces(text, [(start, end)]) if piece.marked)
    assert shown == "".join(piece.text for piece in pieces(text[start:end])).replace("\n", "\n") or start >= end
