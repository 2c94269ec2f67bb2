"""Our parser reads what bash reads."""

from __future__ import annotations

import random

import pytest

from handrail.judge.rules import builtin

from .chance import chosen_seed
from .needs import needs
from .shell_grammar.mutations import mutated, own_commands
from .shell_grammar.ours import ours
from .shell_grammar.verdict import Outcome, compare

MUTATIONS = 800


@pytest.fixture(autouse=True)
def _second_opinions() -> None:
    needs("bash", "install bash 5.2 or newer")
    needs("shfmt", "pip install shfmt-py")


@pytest.mark.parametrize("command", own_commands())
def test_all_three_read_a_plain_script_the_same(command: str) -> None:
    assert compare(command) is Outcome.SAME


def test_the_examples_of_rules_are_read_as_bash_reads_them() -> None:
    examples = {example for rule in builtin().rules.values() for example in (*rule.match, *rule.not_match)}
    chosen = random.Random(chosen_seed()).sample(sorted(examples), min(300, len(examples)))
    assert [example for example in chosen if compare(example) is Outcome.DIFFERENT] == []


def test_mutated_commands_are_read_as_bash_reads_them_or_refused() -> None:
    seed = chosen_seed()
    chance, pool = random.Random(seed), own_commands()
    different = [text for _ in range(MUTATIONS) if compare(text := mutated(chance, pool)) is Outcome.DIFFERENT]
    assert different == [], f"seed {seed}"


@pytest.mark.parametrize(
    "text",
    [
        ">&-rm -rf x",
        "x\\\n=1 rm -rf x",
        "a &\\\n& rm x",
        "echo a # b \\\nrm x",
        "cat <<E\n$(rm x)\nE\n",
        "echo \"${x:-'$(rm y)'}\"",
        "!(rm x)",
        "((rm x) )",
        "f()\n(rm x)",
        "{ rm x;} ",
        "if a; then (b) fi",
        "echo >(rm x) <(rm y)",
        "a=(`rm x` $(rm y))",
        "${x[$(rm y)]}",
        "$((a[$(rm x)]))",
        "$[ $(rm x) ]",
        "case $(rm x) in $(rm y)) rm z;; esac",
        "[[ $(rm x) =~ $(rm y) ]]",
        "cat <<-'E'\n\t$(rm x)\n\tE\nrm y",
        "cat <<A <<B\na\nA\nb\nB\nrm x",
        "echo ${x//$(rm a)/$(rm b)}",
        "time rm x",
        "coproc rm x",
        "a | time rm x",
        "! ! rm x",
        "echo ${a[x}\nrm x\n]}",
        "echo ${#a[*{x}>y]}\nrm x\n]}",
        "a[1]\\\n=x rm x",
        "a[1]+\\\n=x rm x",
        "[[ a =~ b&& -n $(rm x) ]]",
        "x=1 >y w[3 ; rm x ]",
        "[[ a =~ b>(rm x) ]]",
        "[[ a =~ (b<(rm x)) ]]",
        "x=1 <<< y w[3 ; rm x ]",
        "export w[3 ; rm x ]",
        "declare a w[3 | rm x ]",
        "$[ $(rm x) < 2 ]",
        "time > y rm x",
        "time -p ! rm x",
        "f() { rm x; } |& rm y",
        "f() { rm x; } >z |& rm y",
    ],
)
def test_no_command_is_hidden_where_the_grammar_is_odd(text: str) -> None:
    mine = ours(text)
    if mine is None:
        return  # a person is asked
    assert repr(mine).count("('text', 'rm')") == text.count("rm") - text.count("\\trm") - (1 if "'E'" in text else 0)
    assert compare(text) is not Outcome.DIFFERENT


@pytest.mark.parametrize(
    "text",
    ["$'\\x{72}m' y", "$'\\x{7200072}m' y", "`'r\\\nm' y`", "\"`'r\\\nm' y`\"", "`: # \\\nrm x`; rm y"],
    ids=repr,
)
def test_a_name_is_read_as_bash_reads_it_however_it_is_escaped(text: str) -> None:
    assert repr(ours(text)).count("'rm'") == 1
