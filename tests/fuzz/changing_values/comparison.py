"""Compare what bash ran with what the judge saw: whatever was dangerous in it must have been seen or asked about."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Sequence
from pathlib import Path

from handrail.judge import assess

from ..respelling.sandbox import programs_run

# These are the programs that the generated scripts can end in; the others in them do their own work.
PROGRAMS = ("rm", "ls", "l", "r", "m", "s")


def unseen(scripts: Sequence[str], folder: Path) -> tuple[int, list[tuple[str, tuple[str, ...]]]]:
    """How many scripts ran something dangerous, and those of which the judge neither saw it nor asked."""
    dangerous, missed = 0, []
    for script, ran in zip(scripts, programs_run(scripts, folder, PROGRAMS), strict=True):
        bad = next((line for line in ran if _is_dangerous(line)), None)
        if bad is None:
            continue
        dangerous += 1
        if not assess(script).dangerous:
            missed.append((script, bad))
    return dangerous, missed


@functools.cache
def _is_dangerous(line: tuple[str, ...]) -> bool:
    return assess(shlex.join(line)).dangerous
