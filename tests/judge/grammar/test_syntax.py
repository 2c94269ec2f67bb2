"""Where a finding stands in the text that a person sees."""

from __future__ import annotations

import pytest

from handrail.judge import assess
from handrail.judge.values.assessment import Severity, stretches


@pytest.mark.parametrize(
    ("command", "part"),
    [
        ("ls; rm -rf build; pwd", "rm -rf build"),
        ("sudo -u bob rm -rf build > log", "rm -rf build"),
        ("echo $(rm -rf build)", "rm -rf build"),
        ("echo `rm -rf build`", "rm -rf build"),
        ('echo "a `rm -rf \\"build\\"` b"', 'rm -rf \\"build\\"'),
        ("bash -c 'ls; rm -rf build'", "rm -rf build"),
        ('bash -c "ls; rm -rf build"', "rm -rf build"),
        ('d=build; bash -c "rm -rf $d"', '"rm -rf $d"'),
        ("bash -c 'sh -c \"rm -rf build\"'", "rm -rf build"),
        ("cat <<E\na $(rm -rf build) b\nE\n", "rm -rf build"),
        ("bash <<'E'\nls\nrm -rf build\nE\n", "rm -rf build"),
        ("cat <<-E\n\t\tx\n\t\t$(rm -rf build)\n\tE\n", "rm -rf build"),
        ("eval 'rm -rf build'", "rm -rf build"),
        ("ssh host 'cd x && rm -rf build'", "rm -rf build"),
        ("x=rm; $x -rf build", "$x -rf build"),
        ("r\\\nm -rf build; ls", "r\\\nm -rf build"),
        ("ls \\\n  && rm -rf build", "rm -rf build"),
        ("f() { rm -rf build; }; f", "rm -rf build"),
        ("find . -name x -exec rm -rf {} +", "rm -rf {}"),
        ("for d in build; do rm -rf $d; done", "rm -rf $d"),
        ("echo x > /etc/passwd", "/etc/passwd"),
        ("echo 'rm -rf build' | sh", "sh"),
        ("trap 'rm -rf build' EXIT", "rm -rf build"),
    ],
)
def test_a_finding_points_at_what_it_is_about(command: str, part: str) -> None:
    spans = [finding.span for finding in assess(command).findings]
    assert part in [command[start:end] for start, end in spans]


def test_the_text_is_cut_into_stretches_by_gravity() -> None:
    cut = stretches(assess("ls; rm -rf build; rm -rf /"))
    assert "".join(text for text, _ in cut) == "ls; rm -rf build; rm -rf /"
    assert [(text, severity) for text, severity in cut if severity is not None] == [
        ("rm -rf build", Severity.ASK),
        ("rm -rf /", Severity.BLOCK),
    ]


def test_a_segment_says_how_deep_it_stands() -> None:
    depths = {segment.argv[0]: segment.depth for segment in assess("a; sudo b; bash -c 'c; d $(e)'").segments}
    assert depths["a"] == 0
    assert depths["a"] < depths["b"]
    assert depths["c"] < depths["e"]


def test_what_is_unknown_is_named_as_it_is_written() -> None:
    unknown = assess('run "$never_set" ${other:0:2} plain').unknown
    assert [part.what for part in unknown] == ['"$never_set"', "${other:0:2}"]
