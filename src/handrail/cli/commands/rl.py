"""Run planned rollouts. The tools rl_* plan, start and report on them.

Example:
  handrail rl run 1f2e3d4c
"""

from contextlib import closing
from typing import Annotated

from ...agent.models.model_selection import build, known_providers
from ...batch.rollouts import Rollouts, load
from ...errors import HandrailError, ToolFailed
from ...store.rollouts import RunState
from ...tools.rollouts.runs import BEGUN, named, open_runs
from ..options import argument, new_cli
from ..output import emit
from ..runtime import open_runtime

cli = new_cli()


@cli.callback()
def _root() -> None:
    """A group, though it has only one command yet."""


@cli.command()
def run(run_id: Annotated[str, argument("RUN", "The run's id, from rl_configure.")]) -> None:
    """Run all rollouts of a planned run, and exit when they have ended. The tool rl_start does this in the background."""
    app = open_runtime(asks=False)
    with closing(open_runs()) as store:
        planned = store.get(run_id)
        models = build(app.config.model, name=planned.plan.model or None, providers=known_providers(app.plugins))
        rollouts = Rollouts(app, store, planned, load(named(planned.plan.environment, app.config)), models)
        if not store.begin(run_id):
            raise ToolFailed(f"the run {run_id} has begun already")
        try:
            rollouts.plan()
            emit(BEGUN)
            state, error = rollouts.run_all(), ""
        except HandrailError as failure:
            state, error = RunState.FAILED, str(failure)
        store.end(run_id, state, error)
