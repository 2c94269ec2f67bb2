"""`python -m tests.fuzz.changing_values --scripts 5000`: look for values that the judge takes for others than bash does."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path

from .comparison import unseen
from .scripts import Scripts

_BATCH = 250


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--scripts", type=int, default=1_000)
    arguments.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    given = arguments.parse_args()
    makes = Scripts(random.Random(given.seed))
    dangerous, missed = 0, []
    for start in range(0, given.scripts, _BATCH):
        scripts = [makes.script() for _ in range(min(_BATCH, given.scripts - start))]
        with tempfile.TemporaryDirectory() as folder:
            found, some = unseen(scripts, Path(folder))
        dangerous += found
        missed += some
    print(f"seed {given.seed}: {given.scripts:,} scripts, {dangerous:,} ran something dangerous, {len(missed)} unseen")
    for script, line in sorted(missed, key=lambda one: len(one[0]))[:10]:
        print(f"\n{line}\n{script}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
