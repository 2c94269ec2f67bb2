"""Every rule proves itself by its examples, judged whole as commands are."""

from __future__ import annotations

import re

import pytest

from handrail.errors import RuleError
from handrail.judge import assess
from handrail.judge.rules import Command, Rule, Rulebook, builtin
from handrail.judge.rules.usage import programs
from handrail.judge.values.assessment import Severity
from handrail.judge.values.word_values import Arg

RULES = sorted(builtin().rules.values(), key=lambda rule: rule.id)
PLACES = {
    "root": "/",
    "home-root": "~",
    "system-root": "/etc",
    "system": "/srv/x",
    "config": "/etc/hosts",
    "kernel": "/proc/sys/x",
    "device": "/dev/sda",
    "log": "/var/log/x",
    "home": "~/x",
    "credential": "~/.ssh/id_rsa",
    "startup": "~/.bashrc",
    "history": "~/.bash_history",
    "vcs": ".git",
    "own": "~/.config/handrail/x",
    "data": "x.db",
    "outside": "../x",
    "project-root": ".",
    "unknown": "\ue000",
    "*": "x",
}


def _found(command: str) -> list[str]:
    return [finding.rule for finding in assess(command).findings]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_rule_matches_its_examples_and_no_counter_example(rule: Rule) -> None:
    for example in rule.match:
        assert rule.id in _found(example), f"{rule.id} does not find: {example}"
    for example in rule.not_match:
        assert rule.id not in _found(example), f"{rule.id} matches: {example}"


def _written_out(use: str) -> list[str] | None:
    """A command line that a usage pattern is about; None where a condition in Python has the last word."""
    line = [programs(use)[0].replace("*", "x")]
    options: list[str] = []
    for part in use.split()[1:]:
        if part[0] in "!{<>" or part == "...":
            if part[0] in "{<>":
                return None
        elif part[0] == "-":
            options += part.split("|")[0].split(",")[0].replace("*", "x").replace("?", "x").split("=")
        elif part[0] == "+":
            line += ["x"] * int(part[1:] or 1)
        elif part[0] == "@":
            line.append(PLACES[part[1:].split("|")[0]])
        else:
            line.append(part.split("|")[0].replace("*", "x").replace("?", "x"))
    return [line[0], *line[1:], *options]


USES = [(rule, use) for rule in RULES for use in rule.uses if not use.startswith("$")]


def test_every_use_that_a_rule_names_is_found() -> None:
    wrong = []
    for rule, use in USES:
        line = _written_out(use)
        if line is None:
            continue
        command = Command(line[0], [Arg(word) for word in line[1:]])
        if rule.id not in [match.rule.id for match in Rulebook((rule,)).findings(command)]:
            wrong.append((rule.id, use, " ".join(line)))
    assert not wrong


def test_no_use_is_written_twice_in_a_rule() -> None:
    for rule in RULES:
        assert len(set(rule.uses)) == len(rule.uses), rule.id


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"match": ()}, "'match' has none"),
        ({"not_match": ()}, "'not_match' has none"),
        ({"match": "rm x"}, "list of texts"),
        ({"why": ""}, "say why"),
        ({"id": "Deploy"}, "lower-case words"),
    ],
)
def test_a_rule_without_examples_or_sense_does_not_load(change: dict[str, object], message: str) -> None:
    sound: dict[str, object] = {
        "id": "a.b", "severity": Severity.ASK, "why": "x", "uses": ("x",), "match": ("x",), "not_match": ("y",),
    }  # fmt: skip
    with pytest.raises(RuleError, match=re.escape(message)):
        Rule(**{**sound, **change})  # type: ignore[arg-type]


def test_two_rules_with_one_id_do_not_load() -> None:
    rule = Rule("a.b", Severity.ASK, "x", ("x",), ("x",), ("y",))
    with pytest.raises(RuleError, match="two rules"):
        Rulebook((rule, rule))


def test_nothing_of_the_rules_is_loaded_before_a_command_is_judged() -> None:
    import subprocess
    import sys

    code = """
import sys
opened = []
sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)
import handrail.judge.assessor
before = [path for path in opened if path.endswith(".rules")]
handrail.judge.assess("ls")
print(before, any(path.endswith(".rules") for path in opened))
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[] True"
