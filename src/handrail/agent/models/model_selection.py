"""Which models an agent asks: from the configuration, the environment, or a server that runs on this machine."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ...base.lazy_module import named
from ...base.suggest import did_you_mean
from ...config.keys import key_of
from ...errors import ModelError
from ...settings.services import DEFAULT_PROVIDER, PROVIDERS, ModelConfig, ProviderSpec
from .base import NO_PRICES, Prices, StreamingModel, streaming

if TYPE_CHECKING:
    from ...plugins.loader import Plugins

HOW_TO = "run `handrail setup`, or set HANDRAIL_MODEL and the key of its provider, such as OPENAI_API_KEY or ANTHROPIC_API_KEY"
Providers = Mapping[str, ProviderSpec]
# Their default ports.
DEFAULT_PORTS = {11434: "Ollama", 1234: "LM Studio", 8080: "llama.cpp", 8000: "vLLM"}
_CONNECT_SECONDS = 0.2
_ANSWER_SECONDS = 2.0
_MAX_BYTES = 1_000_000


class Choice(NamedTuple):
    """A model and where it is. `source` tells the user why it was chosen; without a `key_variable` no key is sent."""

    name: str
    provider: str
    base_url: str | None
    key_variable: str
    source: str


def known_providers(plugins: Plugins | None) -> Providers:
    """Those of plugins, those that are a file in `providers/`, and those of the table."""
    added = {} if plugins is None else plugins.contributions.model_providers
    return {**added, **_with_own_file(), **PROVIDERS}


@cache
def _with_own_file() -> Providers:
    """Nothing is imported yet; such a model says itself when it lacks a key."""
    names = [path.stem for path in (Path(__file__).parent / "providers").glob("[!_]*.py")]
    return {name: ProviderSpec(f"{__package__}.providers.{name}:MODEL", needs_key=False) for name in names}


def choose(config: ModelConfig, *, name: str | None = None, providers: Providers = PROVIDERS) -> Choice | None:
    """The configured model; `name` overrides it and may be `PROVIDER:NAME`. None when nothing is configured."""
    wanted = name or os.environ.get("HANDRAIL_MODEL") or config.name
    if not wanted:
        return None
    prefix, _, rest = wanted.partition(":")
    if prefix in providers and rest:
        provider, wanted = prefix, rest
    else:
        provider = _provider_by(wanted, config, providers)
    source = "asked for" if name else "HANDRAIL_MODEL" if os.environ.get("HANDRAIL_MODEL") else "config.yaml"
    return Choice(wanted, provider, *_location(config, provider, providers), source)


def _provider_by(name: str, config: ModelConfig, providers: Providers) -> str:
    """The configured provider, unless nothing is configured and the name, or the only key that is there, tells of another."""
    if config.provider != DEFAULT_PROVIDER or config.base_url or os.environ.get("OPENAI_BASE_URL"):
        return config.provider
    for provider, spec in providers.items():
        if name.startswith(spec.names or ("\0",)):
            return provider
    with_key = [each for each, spec in providers.items() if spec.key_variable and os.environ.get(spec.key_variable)]
    return with_key[0] if len(with_key) == 1 else config.provider


def find(config: ModelConfig, *, name: str | None = None, providers: Providers = PROVIDERS) -> Choice | None:
    """The configured model, else the first model of a server that runs on this machine."""
    if (chosen := choose(config, name=name, providers=providers)) is not None:
        return chosen
    for server in local_servers():
        return Choice(server.models[0], DEFAULT_PROVIDER, server.base_url, "", f"{server.what} on this machine")
    return None


def build(config: ModelConfig, *, name: str | None = None, providers: Providers = PROVIDERS) -> list[StreamingModel]:
    """The models in the order in which they are asked. Raises ModelError with what to do when there is none."""
    if (choice := find(config, name=name, providers=providers)) is None:
        raise ModelError(f"no model is configured; {HOW_TO}")
    others = [_sibling(choice, each, config, providers) for each in config.fallbacks if each != choice.name]
    return [connect(each, config, providers) for each in (choice, *others)]


def build_helper(
    config: ModelConfig, *, name: str | None = None, providers: Providers = PROVIDERS
) -> StreamingModel | None:
    """The model for small work. None when the main model does it."""
    choice = find(config, name=name, providers=providers) if config.helper else None
    return None if choice is None else connect(_sibling(choice, config.helper, config, providers), config, providers)


def _sibling(choice: Choice, name: str, config: ModelConfig, providers: Providers) -> Choice:
    """Another model: at the same place as the chosen one, unless its name starts with its provider."""
    elsewhere = choose(config, name=name, providers=providers) if name.partition(":")[0] in providers else None
    return elsewhere or choice._replace(name=name)


def connect(choice: Choice, config: ModelConfig, providers: Providers = PROVIDERS) -> StreamingModel:
    """The model behind a choice. No request is sent yet; raises ModelError when a key is missing."""
    if choice.provider not in providers:
        raise ModelError(f"unknown model.provider {choice.provider!r}; {did_you_mean(choice.provider, providers)}")
    spec = providers[choice.provider]
    key = key_of(choice.key_variable) if choice.key_variable else ""
    if spec.needs_key and not key and choice.base_url is None:
        raise ModelError(f"{choice.name or choice.provider} needs a key; set {choice.key_variable}")
    make: Any = named(spec.model) if isinstance(spec.model, str) else spec.model
    return streaming(
        make(
            choice.name,
            base_url=choice.base_url or spec.base_url or None,
            api_key=key,
            key_variable=choice.key_variable or spec.key_variable,
            context_tokens=config.context_tokens,
            prices=Prices(config.input_price, config.output_price) if config.input_price else list_prices(choice.name),
        )
    )


async def models_at(choice: Choice, config: ModelConfig, providers: Providers = PROVIDERS) -> list[str]:
    """The names of the models that a provider offers; of one that cannot list them, the chosen model alone."""
    if (available := getattr(connect(choice, config, providers), "available", None)) is None:
        return [choice.name] if choice.name else []
    names: list[str] = await available()
    return names


def location_of(choice: Choice, providers: Providers = PROVIDERS) -> str:
    """Where the model is, for the user: its base URL, or the provider's name where that has no fixed address."""
    spec = providers.get(choice.provider)
    return choice.base_url or (spec.base_url if spec is not None else "") or choice.provider


def provider_of(config: ModelConfig, providers: Providers = PROVIDERS) -> Choice:
    """The configured provider, whichever model is asked there."""
    chosen = choose(config, providers=providers)
    return chosen or Choice("", config.provider, *_location(config, config.provider, providers), "config.yaml")


def _location(config: ModelConfig, provider: str, providers: Providers) -> tuple[str | None, str]:
    """The base URL (None: the provider's own) and the variable of the key. The configured ones belong to one provider."""
    configured = provider == config.provider
    base_url = (config.base_url if configured else "") or os.environ.get(f"{provider.upper()}_BASE_URL") or None
    variable = providers[provider].key_variable if provider in providers else ""
    return base_url, (config.key_variable if configured else "") or variable or f"{provider.upper()}_API_KEY"


class LocalServer(NamedTuple):
    """`what` is a guess from the port."""

    what: str
    base_url: str
    models: tuple[str, ...]


def local_servers() -> list[LocalServer]:
    """The servers for local models, on their default ports of this machine. Only those that list their models: anything else
    that answers on such a port is ignored."""
    found = ((what, port, _models(port)) for port, what in DEFAULT_PORTS.items())
    return [LocalServer(what, f"http://127.0.0.1:{port}/v1", models) for what, port, models in found if models]


def _models(port: int) -> tuple[str, ...]:
    with socket.socket() as probe:  # most ports are closed, and a client for HTTP is slow to load
        probe.settimeout(_CONNECT_SECONDS)
        if probe.connect_ex(("127.0.0.1", port)) != 0:
            return ()
    import http.client

    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_ANSWER_SECONDS)
    try:
        connection.request("GET", "/v1/models")
        answer = connection.getresponse()
        listed = json.loads(answer.read(_MAX_BYTES))["data"] if answer.status == 200 else []
        return tuple(str(each["id"]) for each in listed)
    except (OSError, http.client.HTTPException, ValueError, LookupError, TypeError):
        return ()
    finally:
        connection.close()


def list_prices(model: str) -> Prices:
    """Those of the model in a dated table, by the longest beginning of its name that the table has; unknown ones are 0. What a
    provider really charges may differ."""
    name = model.rpartition("/")[2]  # some providers put the maker before the name
    fitting = [known for known in _table() if name.startswith(known)]
    return Prices(*_table()[max(fitting, key=len)]) if fitting else NO_PRICES


def as_of() -> str:
    """The month that the table is from."""
    return next(line.split()[1] for line in _lines() if line.startswith("as-of "))


@cache
def _table() -> dict[str, tuple[float, float]]:
    rows = (line.split() for line in _lines() if not line.startswith("as-of "))
    return {name: (float(sent), float(answered)) for name, sent, answered in rows}


def _lines() -> list[str]:
    text = Path(__file__).with_name("price_list.txt").read_text("utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]
