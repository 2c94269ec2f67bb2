"""Tools for rollouts: agents try tasks with a reward function. One file per tool; `environments` finds the task sets, `runs`
plans and starts the runs, `calls` runs the tools."""

from ...core.availability import missing, usable_unless
from ...types import Unavailable


def check() -> Unavailable | bool:
    return usable_unless(missing("agent", "openai"))
