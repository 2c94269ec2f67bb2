"""Run calls of the `rl_*` tools."""

from __future__ import annotations

from contextlib import closing

from ...core.outcome import tool_result
from ...errors import InvalidArguments
from ...protocols import Action, ActionKind
from ...store.rollouts import Run, RunState
from ...types import JsonDict, ToolContext
from .environments import find, folder_of, named
from .runs import described, found, open_runs, planned, results, start, stop


def rl_list_environments(_: JsonDict, *, context: ToolContext | None = None, **__: object) -> str:
    config = (context or ToolContext()).config
    listed = [
        {name: value for name, value in each._asdict().items() if value} for _, each in sorted(find(config).items())
    ]
    hint = {} if listed else {"hint": f"there is none; an environment is a Python file in {folder_of(config)}"}
    return tool_result({"environments": listed, **hint})


def rl_configure(args: JsonDict, *, context: ToolContext | None = None, **_: object) -> str:
    context = context or ToolContext()
    config, tools = context.config, context.tools
    with closing(open_runs()) as store:
        if not args.get("run_id"):
            return tool_result(described(store.plan(planned(args, config, None, tools)), []))
        run = found(store, args["run_id"])
        store.change(run.id, planned(args, config, run.plan, tools))
        return tool_result(described(store.get(run.id), []))


def rl_start(args: JsonDict, *, context: ToolContext | None = None, **_: object) -> str:
    run = _planned(args)
    if context is not None:
        context.progress(f"starting the run {run.id}")
    start(run.id)
    with closing(open_runs()) as store:
        return tool_result(described(store.get(run.id), store.rollouts(run.id)))


def rl_status(args: JsonDict, **_: object) -> str:
    with closing(open_runs()) as store:
        runs = [found(store, args["run_id"])] if args.get("run_id") else store.all()[:20]
        return tool_result(runs=[described(run, store.rollouts(run.id)) for run in runs])


def rl_stop(args: JsonDict, **_: object) -> str:
    with closing(open_runs()) as store:
        run = found(store, args["run_id"])
        stop(store, run.id)
        return tool_result(described(store.get(run.id), store.rollouts(run.id)))


def rl_results(args: JsonDict, **_: object) -> str:
    with closing(open_runs()) as store:
        run = found(store, args["run_id"])
        return tool_result(results(run, store.rollouts(run.id), args.get("format", "sharegpt")))


def _planned(args: JsonDict) -> Run:
    with closing(open_runs()) as store:
        run = found(store, args["run_id"])
    if run.state is not RunState.PLANNED:
        raise InvalidArguments(f"the run {run.id} is {run.state.value}; configure another", argument="run_id")
    return run


def actions(args: JsonDict, context: ToolContext) -> list[Action]:
    plan = _planned(args).plan
    place = named(plan.environment, context.config).place
    lines = [f"{name}: {value}" for name, value in plan._asdict().items() if value not in ("", 0, None)]
    why = "runs the code of an environment on this machine, and agents that ask a model many times"
    return [Action(ActionKind.TOOL, "\n".join([f"start rollouts with {place}", *lines]), details={"why": why})]
