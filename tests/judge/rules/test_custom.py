"""Rules of users: what is taken, and what is refused with a message that says what to change."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from handrail.errors import RuleError
from handrail.judge import assess
from handrail.judge.rules import builtin
from handrail.judge.rules.custom import configured, rulebook
from handrail.judge.values.assessment import Verdict
from handrail.settings.sections import ApprovalRuleConfig
from tests.support import costs_less_than

SOUND: dict[str, Any] = {
    "why": "deploys to production",
    "uses": ["make deploy|release"],
    "match": ["make deploy", "sudo make -C sub release"],
    "not_match": ["make test"],
}


def test_a_rule_of_a_user_asks_beside_the_built_in_ones() -> None:
    combined = rulebook({"deploy.production": SOUND}, assess=assess)
    assert assess("cd x && make deploy", rulebook=combined).findings[0].rule == "deploy.production"
    assert assess("make test", rulebook=combined).verdict is Verdict.ALLOW
    assert assess("rm -rf /", rulebook=combined).verdict is Verdict.BLOCK


def test_a_rule_can_be_a_regular_expression_for_the_words() -> None:
    entry = {
        "severity": "block",
        "why": "production",
        "pattern": r"deploy\.sh\s+prod",
        "match": ["./deploy.sh prod", "bash -c './deploy.sh  prod'"],
        "not_match": ["./deploy.sh test", "./deploy.sh --help"],
    }
    assert assess("nohup ./deploy.sh prod &", rulebook=rulebook({"a.b": entry}, assess=assess)).verdict is Verdict.BLOCK


def test_the_configuration_brings_its_rules() -> None:
    rule = ApprovalRuleConfig(why="x", uses=("make deploy",), match=("make deploy",), not_match=("make",))
    combined = configured({"deploy.x": rule}, assess=assess)
    assert assess("make deploy", rulebook=combined).verdict is Verdict.ASK
    assert configured({}, assess=assess) is builtin()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"severity": "danger"}, "unknown severity 'danger'; known: block, ask, note"),
        ({"use": "x"}, "unknown field 'use'; did you mean 'uses'"),
        ({"uses": ()}, "give it 'uses' or a 'pattern'"),
        ({"uses": "* deploy"}, "about every program"),
        ({"uses": "make {sometimes}"}, "unknown condition '{sometimes}'"),
        ({"uses": "", "pattern": "x"}, "'uses' is a list of texts"),
        ({"uses": (), "pattern": "("}, "cannot be read"),
        ({"uses": (), "pattern": "x*"}, "match everything"),
        ({"uses": (), "pattern": "[a-z]"}, "nearly everything"),
        ({"uses": (), "pattern": "(a+)+$"}, "takes too long"),
        ({"uses": (), "pattern": "(?:x|xx)+y" + "z" * 1000}, "longer than"),
        ({"why": ""}, "say why"),
        ({"match": ()}, "'match' has none"),
        ({"not_match": 3}, "'not_match' has none"),
        ({"match": "make test"}, "'make test' is not matched"),
        ({"not_match": "make deploy"}, "'make deploy' is matched"),
        ({"spare": "make deploy"}, "'make deploy' is matched"),
    ],
)
def test_a_rule_that_cannot_be_used_is_refused_with_what_to_change(change: dict[str, Any], message: str) -> None:
    with pytest.raises(RuleError) as refused:
        rulebook({"deploy.production": {**SOUND, **change}}, assess=assess)
    assert "deploy.production" in str(refused.value)
    assert message in str(refused.value)


def test_a_built_in_rule_cannot_be_replaced() -> None:
    with pytest.raises(RuleError, match="built-in"):
        rulebook({"fs.rm.wipe": {**SOUND, "severity": "note"}}, assess=assess)


def test_a_pattern_that_is_slow_on_some_text_after_all_asks_in_bounded_time() -> None:
    entry = {
        "why": "x",
        "pattern": r"q(?:\w|\d)+(?:\d|\w)+(?:\w|\d)+(?:\w|\d)+;$",
        "match": ["qabcde1;"[:8] + " "],
        "not_match": ["ls"],
    }
    try:
        combined = rulebook({"a.b": {**entry, "match": ["'qabcdef;'"]}}, assess=assess)
    except RuleError:
        return  # refused at once is as good
    with costs_less_than(5):
        assert assess("q" + "a1" * 4000, rulebook=combined).verdict is Verdict.ASK


def test_the_older_name_of_not_match_still_works() -> None:
    entry = {name: value for name, value in SOUND.items() if name != "not_match"}
    combined = rulebook({"deploy.production": {**entry, "spare": ["make test"]}}, assess=assess)
    assert combined.rules["deploy.production"].not_match == ("make test",)


def test_every_setting_of_a_rule_is_one_that_the_reader_knows() -> None:
    rule = ApprovalRuleConfig(why="x", uses=("make deploy",), match=("make deploy",), spare=("make",))
    rulebook({"a.b": dataclasses.asdict(rule)}, assess=assess)
