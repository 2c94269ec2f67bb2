"""List models, and try the one that an agent would ask.

Which one that is: HANDRAIL_MODEL or `model.name` in the configuration; its provider: OPENAI_BASE_URL, or `model.base_url`;
its key: OPENAI_API_KEY, in the environment or the system's keyring (`keyring set handrail OPENAI_API_KEY`).

\b
Examples:
  handrail model list
  handrail model test
"""

from __future__ import annotations

import os
import time
from typing import Annotated, NamedTuple

import typer

from ...agent.models.base import CallPiece, StreamingModel, TextPiece
from ...agent.models.model_selection import (
    HOW_TO,
    Providers,
    connect,
    find,
    known_providers,
    local_servers,
    location_of,
    models_at,
    provider_of,
)
from ...base.workers import run_async
from ...config import Config
from ...config.keys import key_of
from ...errors import ModelError
from .. import options
from ..output import ExitCode, emit, emit_json, emit_table, say, visible
from ..runtime import open_runtime

cli = options.new_cli()


@cli.command("list")
def list_models(as_json: options.Json = False) -> None:
    """List the models of the configured provider, and of servers that run on this machine.

    \b
    Examples:
      handrail model list
      handrail model list --json | jq -r '.[].name'

    Exit codes: 0 there are some, 1 there are none, or the provider does not answer.
    """
    app = open_runtime(asks=False)
    providers = known_providers(app.plugins)
    chosen = find(app.config.model, providers=providers)
    rows: list[dict[str, object]] = [
        {"name": name, "where": server.base_url, "what": server.what}
        for server in local_servers()
        for name in server.models
    ]
    problem = ""
    try:
        rows = [*_of_provider(app.config, providers), *rows]
    except ModelError as error:
        problem = str(error)
    for row in rows:
        row["chosen"] = chosen is not None and (row["name"], row["where"]) == (
            chosen.name,
            location_of(chosen, providers),
        )
    if as_json:
        emit_json(rows)
    elif rows:
        table = [
            ["*" if row["chosen"] else "", *(visible(str(row[key])) for key in ("name", "where", "what"))]
            for row in rows
        ]
        emit_table(("", "MODEL", "WHERE", "SERVER"), table)
    if problem:
        say(problem)
    elif not rows:
        say(f"no model was found; {HOW_TO}")
    raise typer.Exit(ExitCode.OK if rows and not (problem and chosen) else ExitCode.FAILED)


@cli.command("test")
def try_model(
    name: Annotated[
        str | None, typer.Argument(metavar="[MODEL]", help="By default the one an agent would ask.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Ask a model for a word and for a tool call, and report how it did.

    \b
    Examples:
      handrail model test
      handrail model test qwen3:8b

    Exit codes: 0 it answers, 1 it does not.
    """
    app = open_runtime(asks=False)
    providers = known_providers(app.plugins)
    choice = find(app.config.model, name=name, providers=providers)
    if choice is None:
        raise ModelError(f"no model is configured; {HOW_TO}")
    trial = run_async(tried(connect(choice, app.config.model, providers)))
    where = location_of(choice, providers)
    if as_json:
        emit_json({"model": choice.name, "where": where, "source": choice.source, **trial._asdict()})
        return
    emit(f"{visible(choice.name)} at {visible(where)} ({choice.source})")
    emit(f"✓ answers: first word after {trial.first_seconds:.2f} s, all of it after {trial.seconds:.2f} s")
    emit(
        "✓ calls tools"
        if trial.calls_tools
        else "– did not call the tool it was asked to call: an agent will be of little use"
    )


def _of_provider(config: Config, providers: Providers) -> list[dict[str, object]]:
    """Nothing when no provider is configured: that is not a fault."""
    choice = provider_of(config.model, providers=providers)
    if not (choice.name or choice.base_url or key_of(choice.key_variable, os.environ)):
        return []
    names = run_async(models_at(choice, config.model, providers))
    return [{"name": name, "where": location_of(choice, providers), "what": choice.provider} for name in names]


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
