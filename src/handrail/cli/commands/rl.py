"""`handrail rl`: run the rollouts that somebody planned."""

from __future__ import annotations

from contextlib import closing
from typing import Annotated

import typer

_HELP = """Run planned rollouts. The tools rl_* plan them, start them and tell how they went.

\b
Example:
  handrail rl run 1f2e3d4c
"""
group = typer.Typer(no_args_is_help=True, help=_HELP, rich_markup_mode=None)


def add_to(app: typer.Typer) -> None:
    app.add_typer(group, name="rl")


@group.callback(help=_HELP)
def _root() -> None:
    """It has one command, and may get others."""


@group.command("run")
def run(run_id: Annotated[str, typer.Argument(metavar="RUN", help="The run's id, from rl_configure.")]) -> None:
    """Run all rollouts of a planned run, and end when they are over. The tool rl_start does this in the background.

    \b
    Example:
      handrail rl run 1f2e3d4c
    """
    import asyncio

    from ...agent.models.model_selection import build, known_providers
    from ...errors import HandrailError, ToolFailed
    from ...rollouts.environment import load
    from ...rollouts.runner import Rollouts
    from ...store.rollouts import RunState
    from ...tools.cron.job_requests import check_may_schedule
    from ...tools.rollouts.environments import named
    from ...tools.rollouts.runs import BEGUN, open_runs
    from ..open_runtime import open_runtime
    from ..output import emit

    check_may_schedule()
    here = open_runtime(asks=False)
    with closing(open_runs()) as store:
        planned = store.get(run_id)
        models = build(here.config.model, name=planned.plan.model or None, providers=known_providers(here.plugins))
        rollouts = Rollouts(here, store, planned, load(named(planned.plan.environment, here.config)), models)
        if not store.begin(run_id, [task.id for task in rollouts.tasks]):
            raise ToolFailed(f"the run {run_id} has begun already")
        emit(BEGUN)
        try:
            state, error = asyncio.run(rollouts.run_all()), ""
        except HandrailError as failure:
            state, error = RunState.FAILED, str(failure)
        store.end(run_id, state, error)
