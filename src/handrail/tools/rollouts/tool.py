"""`rl_*`: try agents on tasks with a reward function, many at once, and keep their trajectories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...core.availability import missing, usable_unless
from ...core.builtin import registry
from ...core.registry import tool_result
from ...protocols import Action, ActionKind
from ...types import JsonDict, Unavailable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...types import ToolContext


def rl_list_environments(_: JsonDict, *, context: ToolContext | None = None, **__: object) -> str:
    from ...core.call_config import config_of
    from .environments import find, folder_of

    config = config_of(context)
    found = [
        {name: value for name, value in each._asdict().items() if value} for _, each in sorted(find(config).items())
    ]
    hint = {} if found else {"hint": f"there is none; one is a Python file in {folder_of(config)}"}
    return tool_result({"environments": found, **hint})


def rl_configure(args: JsonDict, *, context: ToolContext | None = None, **_: object) -> str:
    from contextlib import closing

    from ...core.call_config import config_of
    from .runs import described, found, open_runs, planned

    config, tools = config_of(context), context.tools if context is not None else None
    with closing(open_runs()) as store:
        if not args.get("run_id"):
            return tool_result(described(store.plan(planned(args, config, None, tools)), []))
        run = found(store, args["run_id"])
        store.change(run.id, planned(args, config, run.plan, tools))
        return tool_result(described(store.get(run.id), []))


def rl_start(args: JsonDict, *, context: ToolContext | None = None, **_: object) -> str:
    from contextlib import closing

    from .runs import described, open_runs, start

    run = _planned(args)
    if context is not None:
        context.progress(f"starting the run {run.id}")
    start(run.id)
    with closing(open_runs()) as store:
        return tool_result(described(store.get(run.id), store.rollouts(run.id)))


def rl_status(args: JsonDict, **_: object) -> str:
    from contextlib import closing

    from .runs import described, found, open_runs

    with closing(open_runs()) as store:
        runs = [found(store, args["run_id"])] if args.get("run_id") else store.all()[:20]
        return tool_result(runs=[described(run, store.rollouts(run.id)) for run in runs])


def rl_stop(args: JsonDict, **_: object) -> str:
    from contextlib import closing

    from .runs import described, found, open_runs, stop

    with closing(open_runs()) as store:
        run = found(store, args["run_id"])
        stop(store, run.id)
        return tool_result(described(store.get(run.id), store.rollouts(run.id)))


def rl_results(args: JsonDict, **_: object) -> str:
    from contextlib import closing

    from .runs import found, open_runs, results

    with closing(open_runs()) as store:
        run = found(store, args["run_id"])
        return tool_result(results(run, store.rollouts(run.id), args.get("format", "sharegpt")))


def _check() -> Unavailable | bool:
    return usable_unless(missing("agent", "openai"))


def _planned(args: JsonDict) -> Any:
    from contextlib import closing

    from ...errors import InvalidArguments
    from ...store.rollouts import RunState
    from .runs import found, open_runs

    with closing(open_runs()) as store:
        run = found(store, args["run_id"])
    if run.state is not RunState.PLANNED:
        raise InvalidArguments(f"the run {run.id} is {run.state.value}; configure another", argument="run_id")
    return run


def _actions(args: JsonDict, context: ToolContext) -> Sequence[Action]:
    from ...core.call_config import config_of
    from .environments import named

    plan = _planned(args).plan
    place = named(plan.environment, config_of(context)).place
    lines = [f"{name}: {value}" for name, value in plan._asdict().items() if value not in ("", 0, None)]
    why = "runs the code of an environment on this machine, and agents that ask a model many times"
    return [Action(ActionKind.TOOL, "\n".join([f"start rollouts with {place}", *lines]), details={"why": why})]


_RUN: JsonDict = {"type": "string", "description": "The run's id."}
_COMMON: dict[str, Any] = {"toolset": "rl", "check_fn": _check, "emoji": "🏋️", "timeout": 120}


def _object(required: Sequence[str] = (), **properties: JsonDict) -> JsonDict:
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {})}


def _count(description: str, most: int) -> JsonDict:
    return {"type": "integer", "minimum": 1, "maximum": most, "description": description}


registry.register(
    name="rl_list_environments",
    schema={
        "description": "List the environments for rollouts: task sets, each with a reward function.",
        "parameters": _object(),
    },
    handler=rl_list_environments,
    read_only=True,
    **_COMMON,
)
registry.register(
    name="rl_configure",
    schema={
        "description": "Plan a run of rollouts: agents that each try one task of an environment. Gives a run_id.",
        "parameters": _object(
            environment={"type": "string", "description": "Its name."},
            run_id={"type": "string", "description": "To change a run that has not begun."},
            model={"type": "string", "description": "Default: the configured one."},
            backend={"type": "string", "description": "Where they run: local (a sandbox), docker..."},
            toolsets={"type": "array", "items": {"type": "string"}, "description": "What they may use."},
            tasks=_count("Only so many tasks.", 100_000),
            per_task=_count("Rollouts of each task (1).", 1000),
            parallel=_count("At once (2).", 1000),
            model_calls=_count("For each, at most (30).", 1000),
            timeout={"type": "number", "exclusiveMinimum": 0, "description": "Seconds for each (600)."},
        ),
    },
    handler=rl_configure,
    **_COMMON,
)
registry.register(
    name="rl_start",
    schema={
        "description": "Start a planned run in the background. The person is asked first.",
        "parameters": _object(["run_id"], run_id=_RUN),
    },
    handler=rl_start,
    actions=_actions,
    **_COMMON,
)
registry.register(
    name="rl_status",
    schema={
        "description": "How a run of rollouts stands; without run_id the latest runs.",
        "parameters": _object(run_id=_RUN),
    },
    handler=rl_status,
    **_COMMON,
)
registry.register(
    name="rl_stop",
    schema={
        "description": "Stop a run of rollouts. What was scored is kept.",
        "parameters": _object(["run_id"], run_id=_RUN),
    },
    handler=rl_stop,
    **_COMMON,
)
registry.register(
    name="rl_results",
    schema={
        "description": "The rewards of a run, and a JSONL file with its trajectories.",
        "parameters": _object(
            ["run_id"],
            run_id=_RUN,
            format={"type": "string", "enum": ["sharegpt", "messages"], "description": "Of the file."},
        ),
    },
    handler=rl_results,
    **_COMMON,
)
