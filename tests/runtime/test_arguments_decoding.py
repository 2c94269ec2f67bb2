"""What a model wrote as arguments: read, repaired where there is no doubt, refused where there is."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest

from handrail.errors import InvalidArguments
from handrail.runtime.arguments import decode_object
from tests.support import costs_less_than

LIMIT = 5_000_000


def decode(text: str) -> dict[str, Any]:
    return decode_object(text, LIMIT)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1}', {"a": 1}),
        (' \n{"a": 1}\t ', {"a": 1}),
        ("", {}),
        ("   ", {}),
        ("null", {}),
        ("{}", {}),
        ('```json\n{"a": 1}\n```', {"a": 1}),
        ('```\n{"a": 1}\n```\n', {"a": 1}),
        ('{"a": [1, 2,], "b": {"c": 3,},}', {"a": [1, 2], "b": {"c": 3}}),
        ('{"a": "keep ,] and ,} in text",}', {"a": "keep ,] and ,} in text"}),
        ('{"a": "two\nlines\tand a tab"}', {"a": "two\nlines\tand a tab"}),
        ("{'a': 'x', 'b': True, 'c': None}", {"a": "x", "b": True, "c": None}),
        ('"{\\"a\\": 1}"', {"a": 1}),
        ('{"a": "\\ud83d\\ude00"}', {"a": "😀"}),
        ('{"a": 12345678901234567890123456789}', {"a": 12345678901234567890123456789}),
        ('{"a": -0.0}', {"a": -0.0}),
        ('{"a": "```\\n{}\\n```"}', {"a": "```\n{}\n```"}),
    ],
)
def test_what_leaves_no_doubt_is_understood(text: str, expected: dict[str, Any]) -> None:
    assert repr(decode(text)) == repr(expected)


@pytest.mark.parametrize(
    "text",
    [
        "not json",
        "{",
        '{"a": ',
        '{"path": "/etc/pas',
        '{"a": 1',
        '{"a": [1, 2',
        '{"a": 1}{"b": 2}',
        '{"a": 1} and more',
        "{'a': {1, 2}}",
        "{'a': b'x'}",
        "{'a': __import__('os')}",
        "{'a': 1 + 2j}",
        '{"a": NaN}',
        '{"a": Infinity}',
        '{"a": -Infinity}',
        "{'a': float('nan')}",
        '{"a": 1e999}',
        '{"a": -1e999}',
        '{"a": "\\ud800"}',
        '{"\\udfff": 1}',
        '{"a": "\ud800"}',
        "{'a': '\\ud800'}",
    ],
)
def test_what_is_cut_off_or_no_json_is_refused(text: str) -> None:
    with pytest.raises(InvalidArguments):
        decode(text)


@pytest.mark.parametrize(
    ("text", "kind"), [("[1]", "list"), ('"x"', "str"), ("5", "int"), ("true", "bool"), ("1.5", "float")]
)
def test_what_is_no_object_is_refused_by_what_it_is(text: str, kind: str) -> None:
    with pytest.raises(InvalidArguments, match=f"object, not {kind}"):
        decode(text)


def test_the_place_of_the_mistake_is_told() -> None:
    with pytest.raises(InvalidArguments, match="line 2 column"):
        decode('{"a": 1,\n "b": @}')


@pytest.mark.parametrize("leaf", ["1", '"é"', '"\\u0041"'])
@pytest.mark.parametrize("depth", [300, 900, 950, 970, 980, 985, 990, 995, 1_000, 100_000])
def test_any_depth_is_read_or_refused(depth: int, leaf: str) -> None:
    with contextlib.suppress(InvalidArguments):
        decode('{"a":' + "[" * depth + leaf + "]" * depth + "}")


def test_a_text_over_the_limit_is_refused_unread() -> None:
    with costs_less_than(2), pytest.raises(InvalidArguments, match="10,000,010"):
        decode('{"a": "' + "x" * 10_000_001 + '"}')


def test_a_text_just_under_the_limit_is_read() -> None:
    text = json.dumps({"a": "x" * (LIMIT - 20)})
    assert len(decode(text)["a"]) == LIMIT - 20


@pytest.mark.parametrize(
    "text",
    [
        '{"content": "' + 'say \\"hi\\" ' * 2_000,
        "```\n" + "\n" * 1_200 + "x",
        "```" + " " * 3_000 + "\n" * 1_000,
        '{"a": "' + "\\" * 50_000,
        "{" * 50_000,
        '{"a":' * 50_000,
        "-" * 90_000 + "1",
        "(" * 90_000,
        '{"a": ' + "1," * 50_000,
        "[" + "'a'" * 30_000,
        '"' * 100_000,
        '{"a": ' + "9" * 90_000 + "}",
        "not " * 20_000,
    ],
    ids=[
        "cut off among quotes",
        "fence and newlines",
        "fence and blanks",
        "backslashes",
        "braces",
        "nested",
        "minus",
        "parentheses",
        "commas",
        "joined strings",
        "quotes",
        "digits",
        "nots",
    ],
)
def test_a_broken_text_is_refused_in_no_time(text: str) -> None:
    with costs_less_than(5), pytest.raises(InvalidArguments):
        decode(text)


def test_a_large_broken_text_is_refused_in_no_time() -> None:
    with costs_less_than(3), pytest.raises(InvalidArguments):
        decode('{"content": "' + "line of text without quotes\\n" * 100_000)
