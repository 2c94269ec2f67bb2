"""Choose a model, try it, and write it into config.yaml.

It offers the providers whose keys it finds in the environment or the keyring, and the servers for local models that
run on this machine. Keys are not written anywhere.

Examples:
  handrail setup
  handrail setup --model claude-sonnet-4-5
  handrail setup --provider openai --model qwen3 --base-url http://gpu:8000/v1

Exit codes: 0 it is set up, 1 the model does not answer, or you chose none, 2 wrong usage.
"""

import os
import sys
from dataclasses import replace
from typing import Annotated, NamedTuple

from ...agent.models import model_selection as selection
from ...base.suggest import did_you_mean
from ...base.workers import run_async
from ...config.config_file import ConfigFile
from ...config.keys import key_of
from ...errors import InvalidArguments, ModelError
from ...settings.services import DEFAULT_PROVIDER, ModelConfig
from ...types import JsonDict
from ..options import option
from ..output import ExitCode, as_typed, emit, fitted, note, refuse, say, visible
from ..runtime import TerminalPerson, open_runtime
from .model import tried

_MAX_LISTED = 20


class Place(NamedTuple):
    """Where models can be asked. `lacks` is the variable of a key that is needed and not there."""

    provider: str
    base_url: str = ""
    models: tuple[str, ...] = ()
    lacks: str = ""
    about: str = ""


def setup(
    provider: Annotated[str, option("--provider NAME", "Such as openai or anthropic.")] = "",
    model: Annotated[str, option("--model -m NAME", "The model's name there.")] = "",
    base_url: Annotated[str, option("--base-url URL", "Where the server is.")] = "",
    test: Annotated[bool, option("--test/--no-test", "Try the model before it is written.")] = True,
) -> None:
    app = open_runtime(asks=False)
    providers = selection.known_providers(app.plugins)
    if provider and provider not in providers:
        raise InvalidArguments(f"unknown provider {provider!r}; {did_you_mean(provider, providers)}")
    if not model and not sys.stdin.isatty():
        raise InvalidArguments("without a terminal you cannot be asked; give --model NAME, and --provider if needed")
    if provider or base_url or model:
        named = provider or (not base_url and _provider_of(model, providers)) or DEFAULT_PROVIDER
        place = Place(named, base_url, lacks="" if base_url else _lacking(named, providers))
    else:
        place = _asked_place(_places(providers))
    if place.lacks:
        how = f"export {place.lacks}=..., or `keyring set handrail {place.lacks}`"
        raise ModelError(f"{place.provider} needs a key: {how}")
    config = replace(app.config.model, provider=place.provider, base_url=place.base_url)
    if place.provider != app.config.model.provider:
        config = replace(config, key_variable="")
    name = model.removeprefix(f"{place.provider}:") or _asked_model(place, config, providers)
    choice = _chosen(name, config, providers)
    if test:
        note(f"trying {visible(choice.name)} at {visible(selection.location_of(choice, providers))} ...")
        try:
            trial = run_async(tried(selection.connect(choice, config, providers)))
        except ModelError as error:
            raise ModelError(f"{error}; nothing was changed (--no-test writes it untried)") from None
        emit(f"✓ answers after {trial.seconds:.1f} s")
        emit("✓ calls tools" if trial.calls_tools else "– did not call a tool: it will probably not work as an agent")
    _write(replace(config, name=name))
    if (other := os.environ.get("HANDRAIL_MODEL", name)) != name:
        say(f"HANDRAIL_MODEL is set to {other!r}, and overrides this")


def _chosen(name: str, config: ModelConfig, providers: selection.Providers) -> selection.Choice:
    chosen = selection.choose(config, name=f"{config.provider}:{name}", providers=providers)
    assert chosen is not None  # a name was given
    return chosen


def _provider_of(model: str, providers: selection.Providers) -> str:
    """By the name of the model, and the keys that are there."""
    chosen = selection.choose(ModelConfig(), name=model, providers=providers) if model else None
    return chosen.provider if chosen else ""


def _lacking(provider: str, providers: selection.Providers) -> str:
    spec = providers[provider]
    if not spec.needs_key or os.environ.get(f"{provider.upper()}_BASE_URL") or key_of(spec.key_variable):
        return ""
    return spec.key_variable


def _places(providers: selection.Providers) -> list[Place]:
    """What can be used now first: servers on this machine, and providers whose key is there."""
    servers, named = [], []
    for each in selection.local_servers():
        servers.append(Place(DEFAULT_PROVIDER, each.base_url, each.models, about=f"{each.what} at {each.base_url}"))
    for name in providers:
        lacks = _lacking(name, providers)
        about = f"{name} ({f'needs {lacks}' if lacks else 'ready'})"
        named.append(Place(name, lacks=lacks, about=about))
    return [*servers, *sorted(named, key=lambda place: bool(place.lacks))]


def _asked_place(places: list[Place]) -> Place:
    question = "Which provider? Or type the address of a server, such as http://host:8000/v1"
    while True:
        answer = _asked(question, [each.about for each in places])
        if answer.startswith(("http://", "https://")):
            return Place(DEFAULT_PROVIDER, answer)
        if found := [each for each in places if answer.lower() in (each.about.lower(), each.provider)]:
            return found[0]
        say(f"unknown provider {answer!r}; {did_you_mean(answer, dict.fromkeys(each.provider for each in places))}")


def _asked_model(place: Place, config: ModelConfig, providers: selection.Providers) -> str:
    names = list(place.models)
    if not names:
        try:
            names = run_async(selection.models_at(_chosen("?", config, providers), config, providers))
        except ModelError as error:
            say(str(error))
    return _asked("Which model?", names[:_MAX_LISTED])


def _asked(question: str, choices: list[str]) -> str:
    if (answer := TerminalPerson().ask(question, choices)) is None:
        refuse("nothing was changed", ExitCode.FAILED)
    return answer.strip()


def _write(config: ModelConfig) -> None:
    def change(settings: JsonDict) -> None:
        section = settings.setdefault("model", {})
        for key in ("provider", "name", "base_url", "key_variable"):
            section.pop(key, None)
            if value := getattr(config, key):
                section[key] = value

    file = ConfigFile()
    file.update(change)
    emit(fitted(as_typed(f"✓ {config.name} is in {file.path}; `handrail chat` talks with it")))
