"""List models, and try the one that an agent would ask.

The model is HANDRAIL_MODEL or `model.name` of the configuration, at OPENAI_BASE_URL or `model.base_url`. Its key is
found in the environment, such as OPENAI_API_KEY, or in the system's keyring (`keyring set handrail OPENAI_API_KEY`).

Examples:
  handrail model list
  handrail model test
"""

import time
from typing import Annotated, NamedTuple

from ...agent.models import model_selection as selection
from ...agent.models.base import CallPiece, StreamingModel, TextPiece
from ...base.workers import run_async
from ...config.keys import key_of
from ...errors import ModelError
from ..options import Exit, Json, argument, new_cli
from ..output import ExitCode, emit_either, emit_table, say, visible
from ..runtime import open_runtime

cli = new_cli()
Name = Annotated[str | None, argument("[MODEL]", "By default the one an agent would ask.")]


@cli.command("list")
def list_models(as_json: Json = False) -> None:
    """List the models of the configured provider, and of servers that run on this machine.

    Examples:
      handrail model list --json | jq -r '.[].name'

    Exit codes: 0 there are some, 1 there are none, or the provider does not answer.
    """
    app = open_runtime(asks=False)
    providers = selection.known_providers(app.plugins)
    chosen = selection.find(app.config.model, providers=providers)
    rows: list[dict[str, object]] = [
        {"name": name, "where": server.base_url, "what": server.what}
        for server in selection.local_servers()
        for name in server.models
    ]
    problem, place = "", selection.provider_of(app.config.model, providers=providers)
    try:
        if place.name or place.base_url or key_of(place.key_variable):  # else none is configured, which is no fault
            names = run_async(selection.models_at(place, app.config.model, providers))
            where = selection.location_of(place, providers)
            rows[:0] = [{"name": name, "where": where, "what": place.provider} for name in names]
    except ModelError as error:
        problem = str(error)
    for row in rows:
        here = (row["name"], row["where"])
        row["chosen"] = chosen is not None and here == (chosen.name, selection.location_of(chosen, providers))
    facts = ("name", "where", "what")
    table = [["*" if row["chosen"] else "", *(visible(str(row[key])) for key in facts)] for row in rows]
    if rows or as_json:
        emit_table(("", "MODEL", "WHERE", "SERVER"), table, rows, as_json=as_json)
    if problem:
        say(problem)
    elif not rows:
        say(f"no model was found; {selection.HOW_TO}")
    raise Exit(ExitCode.OK if rows and not (problem and chosen) else ExitCode.FAILED)


@cli.command("test")
def try_model(name: Name = None, as_json: Json = False) -> None:
    """Ask a model for a word and for a tool call, and report how it did.

    Exit codes: 0 it answers, 1 it does not.
    """
    app = open_runtime(asks=False)
    providers = selection.known_providers(app.plugins)
    if (choice := selection.find(app.config.model, name=name, providers=providers)) is None:
        raise ModelError(f"no model is configured; {selection.HOW_TO}")
    trial = run_async(tried(selection.connect(choice, app.config.model, providers)))
    where = selection.location_of(choice, providers)
    value = {"model": choice.name, "where": where, "source": choice.source, **trial._asdict()}
    text = f"{visible(choice.name)} at {visible(where)} ({choice.source})\n"
    text += f"✓ answers: first word after {trial.first_seconds:.2f} s, all of it after {trial.seconds:.2f} s\n"
    useless = "– did not make the tool call that it was asked for: it will probably not work as an agent"
    emit_either(value, text + ("✓ calls tools" if trial.calls_tools else useless), as_json=as_json)


_TOOL = {
    "type": "function",
    "function": {
        "name": "echo",
        "description": "Gives back the text.",
        "parameters": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    },
}
_WORD = [{"role": "user", "content": "Answer with one word: hello."}]
_CALL = [{"role": "user", "content": "Call the tool echo with the text: hello. Do not answer yourself."}]


class Trial(NamedTuple):
    answer: str
    first_seconds: float
    seconds: float
    calls_tools: bool


async def tried(model: StreamingModel) -> Trial:
    """Raises ModelError at the first thing that goes wrong."""
    began, first, text = time.monotonic(), 0.0, ""
    async for piece in model.stream(_WORD, []):
        first = first or time.monotonic() - began
        if isinstance(piece, TextPiece):
            text += piece.text
    seconds = time.monotonic() - began
    pieces = [piece async for piece in model.stream(_CALL, [_TOOL])]
    calls = any(isinstance(piece, CallPiece) and piece.name == "echo" for piece in pieces)
    return Trial(text.strip(), first, seconds, calls)
