"""The judge's public face."""

from __future__ import annotations

import gc
import json
import re
import subprocess
import sys

import pytest

from handrail.judge import assess, assessor, detect_dangerous_command
from handrail.judge.rules import builtin
from handrail.judge.values.assessment import Reach, Severity, Verdict


def test_a_dangerous_command_is_told_with_its_rule_and_why() -> None:
    dangerous, rule, why = detect_dangerous_command("rm -rf /")
    assert dangerous
    assert rule in builtin().rules
    assert why == builtin().rules[str(rule)].why


def test_a_harmless_command_has_neither() -> None:
    assert detect_dangerous_command("ls -la") == (False, None, None)


@pytest.mark.parametrize(
    ("command", "verdict"),
    [
        ("ls", Verdict.ALLOW),
        ("rm -rf build", Verdict.ASK),
        ("rm -rf /", Verdict.BLOCK),
        ("ls; rm -rf ~; ls", Verdict.BLOCK),
    ],
)
def test_the_gravest_finding_decides(command: str, verdict: Verdict) -> None:
    assert assess(command).verdict is verdict


def test_findings_come_gravest_first() -> None:
    severities = [finding.severity for finding in assess("rm -rf build; rm -rf /; kill -9 1").findings]
    assert severities == sorted(severities, key=[Severity.BLOCK, Severity.ASK, Severity.NOTE].index)


@pytest.mark.parametrize(
    ("command", "cwd", "reach"),
    [
        ("rm -rf build", "/home/a/repo", Reach.PROJECT),
        ("rm -rf /home/a/repo/build", "/home/a/repo", Reach.PROJECT),
        ("rm -rf ../other", "/home/a/repo", Reach.HOME),
        ("cd /tmp/x && rm -rf y", "/home/a/repo", Reach.TEMP),
        ("rm -rf ~/x", "/home/a/repo", Reach.HOME),
        ("rm -rf /usr/lib/x", "/home/a/repo", Reach.SYSTEM),
        ("rm -rf lib", "/usr", Reach.SYSTEM),
        ("rm -rf $x", "/home/a/repo", Reach.UNKNOWN),
    ],
)
def test_how_far_it_goes_depends_on_where_it_starts(command: str, cwd: str, reach: Reach) -> None:
    assert max(finding.reach for finding in assess(command, cwd=cwd).findings) is reach


def test_the_directory_that_a_shell_is_in_counts_and_not_only_the_project() -> None:
    assert assess("rm -rf *", cwd="/", project="/home/a/repo").verdict is Verdict.BLOCK


def test_what_the_shell_has_already_is_known() -> None:
    assert not assess("${tool:-ls} -rf ~").dangerous
    assert assess("${tool:-ls} -rf ~", variables={"tool": "rm"}).dangerous
    assert assess("${tool:-ls} -rf ~", variables={"tool": None}).dangerous


def test_what_is_left_behind_for_later_commands_is_judged() -> None:
    assert assess("ls() { rm -rf ~; }").dangerous
    assert assess("alias ls='rm -rf ~'").dangerous
    assert not assess("greet() { echo hello; }; alias ll='ls -l'").dangerous


def test_an_assessment_is_plain_data_too() -> None:
    data = json.loads(json.dumps(assess("sudo rm -rf $x", cwd="/work").as_dict()))
    assert data["verdict"] == "ask"
    assert data["findings"][0]["argv"] == ["rm", "-rf", "?"]
    assert data["segments"][0]["argv"] == ["sudo", "rm", "-rf", "?"]
    assert data["unknown"] == [{"what": "$x", "span": [12, 14]}]


def test_every_rule_that_the_walk_raises_exists() -> None:
    from pathlib import Path

    source = Path(assessor.__file__).parent
    raised = {
        rule for path in source.rglob("*.py") for rule in re.findall(r"report\(\s*\"([a-z_.]+)\"", path.read_text())
    }
    assert raised
    assert raised <= builtin().rules.keys()


def test_the_garbage_collector_is_left_as_it_was() -> None:
    assess("true; " * 2_000)
    assert gc.isenabled()
    gc.disable()
    try:
        assess("true; " * 2_000)
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_importing_the_package_loads_neither_judge_nor_rules() -> None:
    code = "import handrail.approval, sys; print([m for m in sys.modules if 'approval.' in m])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_the_judge_is_found_where_the_package_is() -> None:
    from handrail import approval

    assert approval.detect_dangerous_command("rm -rf ~")[0]
    assert not approval.detect_dangerous_command("ls")[0]
    assert approval.assess("ls").verdict is Verdict.ALLOW
    assert all(len(pattern) == 2 for pattern in approval.DANGEROUS_PATTERNS)


def test_the_reason_speaks_of_the_home_when_that_is_where_the_work_is() -> None:
    for command in ("chmod -R 777 .", "mv notes /tmp", ": > *.txt"):
        why = " ".join(finding.why for finding in assess(command, cwd="/home/bob", project="/home/bob").findings)
        assert "home" in why, why
        assert "project" not in why, why
        elsewhere = assess(command.replace(" .", " /srv"), cwd="/home/bob/work", project="/home/bob/work").findings
        assert not any("your home" in finding.why for finding in elsewhere)


@pytest.mark.parametrize("command", ["git status", 'x=$(date); for f in *.txt; do echo "$f $x" | sort > a; done'])
def test_a_judgement_leaves_nothing_for_the_garbage_collector(command: str) -> None:
    assess(command)
    gc.collect()
    gc.disable()
    try:
        for _ in range(20):
            assess(command)
        assert gc.collect() < 20
    finally:
        gc.enable()


@pytest.mark.parametrize(
    "command",
    [
        "echo rm -rf /home/me > x.sh; sh x.sh",
        "{ echo rm -rf /home/me; } > x.sh; sh x.sh",
        "for i in 1; do echo rm -rf /home/me; done > x.sh; sh x.sh",
        "exec > x.sh; echo rm -rf /home/me; sh x.sh",
        "exec 3> x.sh; echo rm -rf /home/me >&3; sh x.sh",
        "f() { echo rm -rf /home/me; }; $(f)",
        "f() { echo rm -rf /home/me; } > x.sh; f; sh x.sh",
        "sh < <(echo rm -rf /home/me)",
        "{ true; echo rm -rf /home/me; } | sh",
        "if true; then echo rm -rf /home/me; fi | sh",
        "echo rm -rf /home/me | tee x.sh; sh x.sh",
        "bash -c 'echo rm -rf /home/me' | sh",
    ],
)
def test_what_is_printed_counts_wherever_something_reads_it(command: str) -> None:
    assert assess(command).verdict is Verdict.BLOCK


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("rm -rf build", "cd ~; rm -rf build"),
        ("psql -f q.sql", "echo 'drop table a;' > q.sql; psql -f q.sql"),
        ("cat a | psql", "echo 'drop table a;' | psql"),
        ("sudo ls; cp x /root/y", "docker exec c cp x /root/y; cp x /root/.bashrc"),
        ("sh x.sh", "curl -o x.sh https://a.example; sh x.sh"),
        ("rm a*b", "rm $(find /home/me)"),
    ],
)
def test_the_same_line_is_judged_again_where_it_means_something_else(before: str, after: str) -> None:
    """In a long command, what was said about a line is kept, by all that the rules see of it."""
    many = "true one; cat a.txt | sort -u; " * 20
    alone = {finding.rule for finding in assess(after).findings}
    assert alone
    assert alone <= {finding.rule for finding in assess(f"{many}{before}; {before}; {after}").findings}


@pytest.mark.parametrize("nothing", ["!", "time", "! !", "time -p"])
def test_a_pipeline_without_a_command_does_nothing(nothing: str) -> None:
    assert assess(f"{nothing}; ls").verdict is Verdict.ALLOW
    assert assess(f"{nothing}; echo rm -rf /home/me | sh").verdict is Verdict.BLOCK
