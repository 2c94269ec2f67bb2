"""Tools for rollouts: agents try tasks with a reward function. One file per tool; `tool` is what they register alike, `runs`
runs them."""

from ...core.availability import missing, usable_unless
from ...core.builtin import family, text
from ...types import Unavailable

tool = family("rl", "handrail.tools.rollouts.runs", check_fn="handrail.tools.rollouts:check", emoji="🏋️", timeout=120)
RUN_ID = text("The run's id.")


def check() -> Unavailable | bool:
    return usable_unless(missing("agent", "httpx"))
