"""What bash really ran, after values had changed by every means of the shell, the judge has seen or asked about."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from .chance import chosen_seed
from .changing_values.comparison import unseen
from .changing_values.programs import LANGUAGES, Programs
from .changing_values.scripts import Scripts
from .needs import needs


def test_no_value_changes_without_the_judge_knowing(tmp_path: Path) -> None:
    needs("bwrap", "apt-get install bubblewrap")
    makes = Scripts(random.Random(chosen_seed()))
    dangerous, missed = unseen([makes.script() for _ in range(150)], tmp_path)
    assert dangerous > 15, "the scripts hardly run anything dangerous"
    assert not missed


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_name_of_another_language_changes_without_the_judge_knowing(language: str, tmp_path: Path) -> None:
    needs("bwrap", "apt-get install bubblewrap")
    needs(LANGUAGES[language]["run"].split()[0], "see the set-up of the tests")
    makes = Programs(random.Random(chosen_seed()), language)
    dangerous, missed = unseen([makes.command() for _ in range(40)], tmp_path)
    assert dangerous, "the programs run nothing dangerous"
    assert not missed
