"""A pattern that is taken for portable finds the same lines by Python and by ripgrep."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from handrail.tools.files.searching.ripgrep import is_portable
from handrail.tools.files.searching.scan import compiled

LINES = "|a|b|ab|aab|a b|A|ä|äb|a-b|a]b|[a]|a.b|1|a1|_|a\tb|a{2}|(a)|^a|a$|\\|b\\d|é日本|aaa|-|]|a&&b".split("|")
PIECES = st.sampled_from(
    r"a b ä A 1 - ] } { [ ( ) | * + ? ^ $ . \d \w \W \S \s \b \. \- \] \[ [ab] [^a] [a-c] []a] [^]a] [a-] [\w-] [a\]b] "
    r"[a&&b] [a-c-e] [\d-a] {2} {1,} {,2} {1,2} (?: (?P<x> (?i) \x41 \u00e4 \t & ~ # / \{ \} \\ (?=a) (?<!b) \1 \A \Z "
    r"*+ ??".split()
)
SLOW = [HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much, HealthCheck.too_slow]


@settings(max_examples=60, deadline=None, suppress_health_check=SLOW)
@given(pattern=st.lists(PIECES, min_size=1, max_size=5).map("".join))
def test_both_engines_agree(tmp_path: Path, pattern: str) -> None:
    assume(is_portable(pattern))
    assume(not re.search(r"(\\b|[$^])[$^]|[$^]\\b", pattern))  # ripgrep is not quite sure of two places at once
    (tmp_path / "lines").write_text("\n".join(LINES) + "\n")
    ran = subprocess.run(
        ["rg", "--no-config", "--json", "--crlf", f"--regexp={pattern}", "./lines"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    if ran.returncode == 2:  # then Python decides alone
        return
    events = [json.loads(line) for line in ran.stdout.splitlines()]
    fast = [event["data"]["line_number"] for event in events if event["type"] == "match"]
    assert [number for number, line in enumerate(LINES, 1) if compiled(pattern).search(line)] == fast


@pytest.mark.parametrize(
    "pattern", [r"foo\.bar\(", "^import (os|sys)$", r"\bdef\s+\w+", "(?i)todo|fixme", "[A-Z_]{3,}", "a+?b"]
)
def test_everyday_patterns_are_portable(pattern: str) -> None:
    assert is_portable(pattern)


@pytest.mark.parametrize(
    "pattern", [r"(?<=a)b", r"(a)\1", r"\Aa", r"a\Z", r"\p{L}", "a++", "[[:alpha:]]", "a(?i)b", "a\nb", "a\0"]
)
def test_what_means_something_else_elsewhere_is_not(pattern: str) -> None:
    assert not is_portable(pattern)
