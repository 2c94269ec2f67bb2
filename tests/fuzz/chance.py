"""Chance that is the same in every run, so that a red run is a change of the code. `HYPOTHESIS_PROFILE=explore` looks further."""

from __future__ import annotations

import os
import random


def chosen_seed() -> int:
    return random.randrange(1 << 30) if os.environ.get("HYPOTHESIS_PROFILE") == "explore" else 1
