"""Replay a recorded session, and show where it differs.

The model gets the recorded messages and results: no tool runs. With --tools no model is asked: the recorded
calls run again, you are asked before dangerous ones, and their results are compared. Calls of the agent's own tools,
such as todo, are left out.

Examples:
  handrail replay bug.cassette.jsonl
  handrail replay bug.cassette.jsonl --model other-model
  handrail replay bug.cassette.jsonl --tools

Exit codes: 0 as it was, 1 it differs.
"""

import json
from pathlib import Path
from typing import Annotated

from ...agent.agent import Agent
from ...agent.cassette import Cassette, Difference, Player, run_again
from ...agent.events import End
from ...agent.models.model_selection import build, known_providers
from ...base.workers import run_async
from ...errors import ModelError
from ...store.sessions import SessionStore
from ..call_text import counted, shortened
from ..options import Exit, Json, argument, option
from ..output import ExitCode, emit, emit_json, note, result_stream, visible
from ..runtime import open_runtime

_RESULT_CHARS = 300
_DIFFERENCES = {"new": "not called then", "missing": "not called now", "result": "gives something else now"}
ReplayCassette = Annotated[Path, argument("FILE", "What `handrail record` has written.")]
Model = Annotated[str | None, option("--model -m NAME", "Ask this model.")]
Tools = Annotated[bool, option("--tools", "Ask no model: make the recorded calls with today's tools, and compare.")]


def replay(cassette: ReplayCassette, model: Model = None, tools: Tools = False, as_json: Json = False) -> None:
    recorded = Cassette.load(cassette)
    with result_stream() as stdout:
        if tools:
            found = run_async(run_again(recorded, open_runtime(), task_id="replay"))
        else:
            found = _with_model(recorded, model)
        if as_json:
            emit_json({"calls": len(recorded.calls), "differences": [each._asdict() for each in found]}, stdout)
        else:
            for each in found:
                arguments = shortened(visible(json.dumps(each.arguments, ensure_ascii=False)), _RESULT_CHARS)
                emit(f"{each.tool} {arguments}: {_DIFFERENCES[each.kind]}", stdout)
                if each.kind == "result":
                    emit(f"    then  {shortened(visible(str(each.recorded)), _RESULT_CHARS)}", stdout)
                    emit(f"    now   {shortened(visible(str(each.now)), _RESULT_CHARS)}", stdout)
            how_many = f"{len(found)} differ" if found else "nothing differs"
            emit(f"{counted(len(recorded.calls), 'call')} recorded; {how_many}.", stdout)
    raise Exit(ExitCode.FAILED if found else ExitCode.OK)


def _with_model(recorded: Cassette, model: str | None) -> list[Difference]:
    app = open_runtime()
    player, store = Player(recorded), SessionStore()
    models = build(app.config.model, name=model, providers=known_providers(app.plugins))
    with Agent(app, models, store=store, play=player.run) as agent:
        for message in recorded.said:
            ended = agent.run(message)
            if ended.end is End.FAILED:
                raise ModelError(ended.reason)
            note(f"agent: {ended.answer}")
    store.close()
    return player.differences()
