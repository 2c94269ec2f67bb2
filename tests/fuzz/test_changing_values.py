"""What bash really ran, after values had changed by every means of the shell, the judge has seen or asked about."""

from __future__ import annotations

import random
from pathlib import Path

from .chance import chosen_seed
from .changing_values.comparison import unseen
from .changing_values.scripts import Scripts
from .needs import needs


def test_no_value_changes_without_the_judge_knowing(tmp_path: Path) -> None:
    needs("bwrap", "apt-get install bubblewrap")
    makes = Scripts(random.Random(chosen_seed()))
    dangerous, missed = unseen([makes.script() for _ in range(150)], tmp_path)
    assert dangerous > 15, "the scripts hardly run anything dangerous"
    assert not missed
