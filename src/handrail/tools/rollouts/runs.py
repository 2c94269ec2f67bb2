"""Run calls of the `rl_*` tools: find the environments, plan a run, start its process, describe it, export its results."""

import ast
import contextlib
import json
import os
import select
import shutil
import statistics
import subprocess
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from ...base.own_process import self_command
from ...base.suggest import did_you_mean
from ...config.paths import config_path, entry_points, state_dir
from ...core.outcome import tool_result
from ...environments.backend_table import backends
from ...environments.errors import UnknownEnvironment
from ...errors import InvalidArguments, RunNotFound, ToolFailed, UnknownToolset
from ...protocols import Action, ActionKind
from ...settings.schema import Config
from ...store.export import sharegpt_turns
from ...store.ledger import work_folder
from ...store.rollouts import Plan, Rollout, RolloutState, RolloutStore, Run, RunState
from ...types import JsonDict, Toolbox, ToolContext

BEGUN = "begun"
TRAJECTORIES_NAME = "trajectories.jsonl"  # as the worker of a batch writes it
_START_SECONDS = 90.0
_STOP_SECONDS = 30.0
_SHOWN = 50
GROUP = "handrail.rl_environments"
_FOLDER = "rl_environments"


def open_runs() -> RolloutStore:
    """The user's runs; those whose process was killed are marked. To be closed."""
    store = RolloutStore(state_dir() / "rollouts" / "runs.db")
    for lost in store.mark_lost():
        shutil.rmtree(work_folder(lost), ignore_errors=True)
    return store


def folder_of(run_id: str) -> Path:
    """The folder of a run: its ledger, its trajectories, its log, its exports."""
    return state_dir() / "rollouts" / run_id


def planned(args: JsonDict, config: Config, before: Plan | None, tools: Toolbox | None) -> Plan:
    given = {name: args[name] for name in Plan._fields if args.get(name) is not None}
    if before is None and "environment" not in given:
        raise InvalidArguments("environment is needed", argument="environment")
    if "toolsets" in given:
        given["toolsets"] = tuple(given["toolsets"])
    try:
        if tools is not None:
            tools.names_of(given.get("toolsets", ()))
        backend = given.get("backend", "local").partition(":")[0]  # docker:python:3.12 says which image too
        backends.get(backend)
    except UnknownToolset as error:
        raise InvalidArguments(str(error), argument="toolsets") from None
    except UnknownEnvironment:
        near = did_you_mean(backend, backends.names())
        raise InvalidArguments(f"unknown backend {backend!r}; {near}", argument="backend") from None
    plan = before._replace(**given) if before else Plan(**given)
    named(plan.environment, config)
    limit = config.rollouts.max_parallel
    if plan.parallel > limit:
        raise InvalidArguments(f"parallel is {limit} at most: rollouts.max_parallel", argument="parallel")
    return plan


def found(store: RolloutStore, run_id: str) -> Run:
    try:
        return store.get(run_id)
    except RunNotFound as error:
        raise InvalidArguments(str(error), argument="run_id") from None


def start(run_id: str) -> None:
    """Start the run in a process that outlives this one. Raises ToolFailed with the process's last line."""
    folder = folder_of(run_id)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    log = folder / "log.txt"
    # The shell ends immediately, so that nothing has to wait for the process itself.
    with (
        open(log, "wb") as errors,
        subprocess.Popen(
            ["/bin/sh", "-c", '"$@" &', "sh", *self_command("rl", "run", run_id)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,
        ) as launcher,
    ):
        assert launcher.stdout is not None
        ready, _, _ = select.select([launcher.stdout], [], [], _START_SECONDS)
        first_line = launcher.stdout.readline().decode() if ready else ""
    if first_line.strip() != BEGUN:
        lines = log.read_text(errors="replace").strip().splitlines()
        raise ToolFailed(f"the run did not start: {lines[-1] if lines else 'it printed nothing'}")


def stop(store: RolloutStore, run_id: str) -> None:
    """Ask the run to stop, and wait for that up to a timeout."""
    run = store.get(run_id)
    if run.state is RunState.PLANNED:
        store.end(run_id, RunState.STOPPED)
    store.request_stop(run_id)
    end, tick = time.monotonic() + _STOP_SECONDS, threading.Event()
    while store.get(run_id).state is RunState.RUNNING and time.monotonic() < end:
        store.mark_lost()
        tick.wait(0.1)


def described(run: Run, rollouts: list[Rollout]) -> JsonDict:
    counts = {state.value: sum(each.state is state for each in rollouts) for state in RolloutState}
    plan = {name: value for name, value in run.plan._asdict().items() if value not in ("", 0, None)}
    answer: JsonDict = {"run_id": run.id, "state": run.state.value, **plan}
    if run.stop and run.state is RunState.RUNNING:
        answer["state"] = "stopping"
    if rollouts:
        answer["rollouts"] = {"total": len(rollouts), **{name: count for name, count in counts.items() if count}}
    if run.started is not None:
        answer["seconds"] = round((run.ended or time.time()) - run.started, 1)
    if run.error:
        answer["error"] = run.error
    if rewards := [each.reward for each in rollouts if each.reward is not None]:
        answer["mean_reward"] = round(statistics.fmean(rewards), 4)
    return answer


def results(run: Run, rollouts: list[Rollout], form: str) -> JsonDict:
    """Rewards by task, what failed, and where the trajectories are."""
    scored = [each for each in rollouts if each.reward is not None]
    by_task: dict[str, list[float]] = {}
    for each in scored:
        by_task.setdefault(each.task, []).append(float(each.reward or 0.0))
    answer = described(run, rollouts)
    answer["tasks"] = {task: round(statistics.fmean(rewards), 4) for task, rewards in by_task.items()}
    answer["each"] = [_shown(each) for each in rollouts[:_SHOWN]]
    if len(rollouts) > _SHOWN:
        answer["hint"] = f"the first {_SHOWN} are listed; all of them are in the file"
    answer["trajectories"] = str(export(run, scored, form))
    return answer


def export(run: Run, rollouts: list[Rollout], form: str) -> Path:
    """Write one line per rollout, with its reward, to a file of the run."""
    path = folder_of(run.id) / f"trajectories-{form}.jsonl"
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    wanted = {str(each.number): each for each in rollouts}
    made: dict[str, Any] = {}
    with contextlib.suppress(FileNotFoundError), open(path.parent / TRAJECTORIES_NAME, encoding="utf-8") as lines:
        made = {each["id"]: each["messages"] for each in map(json.loads, lines) if each["id"] in wanted}
    with open(path, "w", encoding="utf-8") as file:
        for number, each in wanted.items():
            about = {"run": run.id, "rollout": each.number, "task": each.task, "reward": each.reward}
            messages = made.get(number, [])
            shown = sharegpt_turns(messages) if form == "sharegpt" else messages
            name = "conversations" if form == "sharegpt" else "messages"
            line = {**about, "ended_by": each.ended_by, "id": each.session, name: shown}
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
    return path


def _shown(each: Rollout) -> JsonDict:
    facts = {
        "rollout": each.number, "task": each.task, "state": each.state.value, "reward": each.reward,
        "ended_by": each.ended_by, "error": each.error, "model_calls": each.model_calls or None,
    }  # fmt: skip
    return {name: value for name, value in facts.items() if value not in (None, "")}


class Found(NamedTuple):
    """`path` is the user's file, `target` what a package offers as an entry point; `problem` why it cannot be used."""

    name: str
    about: str = ""
    path: str = ""
    target: str = ""
    problem: str = ""


def environments_folder(config: Config) -> Path:
    named = config.rollouts.folder
    return Path(os.path.expanduser(named)) if named else config_path().parent / _FOLDER


def find(config: Config) -> dict[str, Found]:
    """By name. The user's own go before those of packages."""
    found = {name: Found(name, "from a package", target=target) for name, target in entry_points(GROUP)}
    folder = environments_folder(config)
    for path in sorted(folder.glob("*.py")) if folder.is_dir() else ():
        if path.stem.isidentifier() and not path.stem.startswith("_"):
            found[path.stem] = _read(path)
    return found


def named(name: str, config: Config) -> Found:
    """Raises InvalidArguments for an environment that is unknown or cannot be used."""
    found, folder = find(config), environments_folder(config)
    if name not in found:
        known = did_you_mean(name, found) if found else f"there is none yet: put a Python file into {folder}"
        raise InvalidArguments(f"unknown environment {name!r}; {known}", argument="environment")
    if problem := found[name].problem:
        raise InvalidArguments(f"the environment {name!r} cannot be used: {problem}", argument="environment")
    return found[name]


def _read(path: Path) -> Found:
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, SyntaxError, RecursionError) as error:
        return Found(path.stem, path=str(path), problem=f"it cannot be read: {error}")
    defined = {name for node in tree.body for name in _defined(node)}
    lacks = [what for what, names in _NEEDED.items() if not names & defined]
    about = (ast.get_docstring(tree) or "").partition("\n")[0]
    return Found(path.stem, about, str(path), problem=f"it lacks {' and '.join(lacks)}" if lacks else "")


_NEEDED = {"TASKS (or a function tasks)": {"TASKS", "tasks"}, "a function reward": {"reward"}}


def _defined(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return [node.name]
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [alias.asname or alias.name for alias in node.names]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def rl_list_environments(_: JsonDict, *, context: ToolContext, **__: object) -> str:
    found, folder = sorted(find(context.config).items()), environments_folder(context.config)
    listed = [{name: value for name, value in each._asdict().items() if value} for _, each in found]
    hint = {} if listed else {"hint": f"there is none; an environment is a Python file in {folder}"}
    return tool_result({"environments": listed, **hint})


def rl_configure(args: JsonDict, *, context: ToolContext, **_: object) -> str:
    config, tools = context.config, context.tools
    with closing(open_runs()) as store:
        if not args.get("run_id"):
            return tool_result(described(store.plan(planned(args, config, None, tools)), []))
        run = found(store, args["run_id"])
        store.change(run.id, planned(args, config, run.plan, tools))
        return tool_result(described(store.get(run.id), []))


def rl_start(args: JsonDict, *, context: ToolContext, **_: object) -> str:
    run = _planned(args)
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
    chosen = named(plan.environment, context.config)
    lines = [f"{name}: {value}" for name, value in plan._asdict().items() if value not in ("", 0, None)]
    why = "runs the code of an environment on this machine, and agents that ask a model many times"
    text = "\n".join([f"start rollouts with {chosen.path or chosen.target}", *lines])
    return [Action(ActionKind.TOOL, text, details={"why": why})]
