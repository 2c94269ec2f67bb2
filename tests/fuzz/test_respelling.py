"""A command keeps its verdict however it is written."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from handrail.judge import assess
from handrail.judge.rules import builtin

from .chance import chosen_seed
from .needs import needs
from .respelling.forms import all_forms
from .respelling.rows import DANGEROUS, HARMLESS, program_names
from .respelling.sandbox import programs_run

FORMS = all_forms()


@pytest.mark.parametrize("name", FORMS)
def test_what_is_dangerous_stays_so_and_what_is_harmless_too(name: str) -> None:
    form = FORMS[name]
    for row in DANGEROUS:
        text = form(row)
        assert text is None or assess(text).dangerous, text
    for row in HARMLESS:
        text = form(row)
        assert text is None or not assess(text).dangerous, text


def test_bash_runs_the_same_programs_whatever_the_form(tmp_path: Path) -> None:
    """Without this the test above would prove nothing about forms that do something else."""
    needs("bwrap", "apt-get install bubblewrap")
    needs("xxd", "apt-get install xxd")
    chance = random.Random(chosen_seed())
    rows = [*chance.sample(DANGEROUS, 2), chance.choice(HARMLESS)]
    forms = [(row, name, text) for row in rows for name, form in FORMS.items() if (text := form(row)) is not None]
    logs = programs_run([*rows, *(text for _, _, text in forms)], tmp_path, program_names())
    plain = dict(zip(rows, logs, strict=False))
    for (row, name, text), log in zip(forms, logs[len(rows) :], strict=True):
        assert log, f"nothing was run: {text}"
        assert log == plain[row], f"{name}: {text}"


def test_examples_of_rules_stay_dangerous_in_every_form() -> None:
    """Every rule's examples, each in some of the forms."""
    chance = random.Random(chosen_seed())
    lost = []
    count = 0
    for rule in builtin().rules.values():
        for example in rule.match:
            for name in chance.sample(sorted(FORMS), 4):
                text = _formed(name, example)
                if text is not None and assess(example).dangerous:
                    count += 1
                    if not assess(text).dangerous:
                        lost.append((name, text))
    assert len(lost) <= count / 1000, lost


def _formed(name: str, example: str) -> str | None:
    from handrail.judge.grammar.syntax import ShellSyntaxError

    try:
        return FORMS[name](example)
    except ShellSyntaxError:
        return None
