"""`python -m tests.fuzz.respelling`: write labelled commands in every form, and let real bash say which forms are the same.

A form counts when bash, in the sandbox, runs the same programs with the same arguments as the plain command. Of those it
prints how many dangerous commands keep being found, and how many harmless ones begin to be asked about.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from handrail.judge import assess
from handrail.judge.grammar.syntax import ShellSyntaxError
from tests.judge.test_judge_labelled import rows

from .forms import Form, all_forms
from .sandbox import REAL, programs_run

_BATCH = 400
# What would end the sandbox itself, or fill it with processes.
_LEFT_OUT = frozenset(("fork_bomb", "process_kill", "shutdown"))


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rows", type=int, default=100, help="how many commands of each kind")
    arguments.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    given = arguments.parse_args()
    chance = random.Random(given.seed)
    kept = True
    for kind, most in (("dangerous", 0.001), ("harmless", 0.0)):
        chosen = [command for family, command in rows(kind) if family not in _LEFT_OUT]
        chosen = [command for command in chosen if assess(command).dangerous == (kind == "dangerous")]
        chosen = chance.sample(chosen, min(given.rows, len(chosen)))
        same, changed = _judged(chosen, all_forms())
        kept = kept and len(changed) <= most * same
        print(f"seed {given.seed}: {kind}: {same:,} forms are the same to bash, {len(changed)} change the verdict")
        for name, text in changed[:20]:
            print(f"  {name}: {text!r}")
    return 0 if kept else 1


def _judged(commands: list[str], forms: dict[str, Form]) -> tuple[int, list[tuple[str, str]]]:
    same, changed = 0, []
    for command, name, text in _equivalent(commands, forms):
        same += 1
        if assess(text).dangerous != assess(command).dangerous:
            changed.append((name, text))
    return same, changed


def _equivalent(commands: list[str], forms: dict[str, Form]) -> Iterator[tuple[str, str, str]]:
    written = [(command, name, text) for command in commands for name, text in _written(command, forms)]
    rest = iter(written)
    while some := list(islice(rest, _BATCH)):
        plain = list(dict.fromkeys(command for command, _, _ in some))
        programs = sorted({name for command in plain for name in _programs(command)} - REAL)
        with tempfile.TemporaryDirectory() as folder:
            logs = programs_run([*plain, *(text for _, _, text in some)], Path(folder), programs)
        expected = dict(zip(plain, logs, strict=False))
        for row, log in zip(some, logs[len(plain) :], strict=True):
            if log and log == expected[row[0]]:
                yield row


def _written(command: str, forms: dict[str, Form]) -> Iterator[tuple[str, str]]:
    for name, form in forms.items():
        try:
            text = form(command)
        except ShellSyntaxError:
            continue
        if text is not None:
            yield name, text


def _programs(command: str) -> Iterator[str]:
    for segment in assess(command).segments:
        name = segment.argv[0].rpartition("/")[2]
        if name.replace(".", "").replace("-", "").replace("_", "").isalnum():
            yield name


if __name__ == "__main__":
    sys.exit(main())
