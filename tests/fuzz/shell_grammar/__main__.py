"""`python -m tests.fuzz.shell_grammar`: compare at length, and print what differs."""

from __future__ import annotations

import argparse
import collections
import random
import resource
import sys
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from pathlib import Path

from .mutations import mutated, own_commands
from .verdict import Outcome, compare

_MEMORY = 2 << 30


def _compared(text: str) -> tuple[str, Outcome]:
    return text, compare(text)


def _limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))


def main() -> int:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--mutations", type=int, default=10_000)
    arguments.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    arguments.add_argument("--corpus", type=Path, action="append", default=[], help="a file of commands, one a line")
    arguments.add_argument("--jobs", type=int, default=2)
    given = arguments.parse_args()
    chance, pool = random.Random(given.seed), own_commands()
    lines = [line for path in given.corpus for line in path.read_text(errors="surrogateescape").splitlines() if line]
    pool += lines
    texts = iter([*lines, *(mutated(chance, pool) for _ in range(given.mutations))])
    count: collections.Counter[Outcome] = collections.Counter()
    with ProcessPoolExecutor(given.jobs, initializer=_limit_memory) as workers:
        while batch := list(islice(texts, 5_000)):
            for text, outcome in workers.map(_compared, batch, chunksize=100):
                count[outcome] += 1
                if outcome is Outcome.DIFFERENT:
                    print(f"different: {text!r}", flush=True)
            print(f"seed {given.seed}: {sum(count.values()):,} so far", file=sys.stderr, flush=True)
    for outcome, number in count.most_common():
        print(f"{number:>9,}  {outcome}")
    return 1 if count[Outcome.DIFFERENT] else 0


if __name__ == "__main__":
    sys.exit(main())
