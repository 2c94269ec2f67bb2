"""Which models an agent asks: from the configuration, the environment, or a server that runs on this machine."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ...base.suggest import did_you_mean
from ...config.keys import key_of
from ...errors import ModelError
from .base import Prices, StreamingModel, streaming
from .local_servers import local_servers

if TYPE_CHECKING:
    from ...settings.services import ModelConfig
    from .anthropic import AnthropicMessages
    from .openai_chat import OpenAIChat

PROVIDERS = ("openai", "anthropic")
HOW_TO = "set HANDRAIL_MODEL and OPENAI_API_KEY, and OPENAI_BASE_URL for another provider; or `handrail config set model.name X`"


class Choice(NamedTuple):
    """A model and where it is. `source` says for people why it was chosen; without a `key_variable` no key is sent."""

    name: str
    provider: str
    base_url: str | None
    key_variable: str
    source: str


def choose(config: ModelConfig, *, name: str | None = None, environ: Mapping[str, str] | None = None) -> Choice | None:
    """What is configured; `name` is what a person asked for, with `anthropic:` or `openai:` before it for another provider.
    None when nothing is."""
    environ = os.environ if environ is None else environ
    wanted = name or environ.get("HANDRAIL_MODEL") or config.name
    if not wanted:
        return None
    said, _, rest = wanted.partition(":")
    provider, wanted = (said, rest) if said in PROVIDERS and rest else (config.provider, wanted)
    source = "asked for" if name else "HANDRAIL_MODEL" if environ.get("HANDRAIL_MODEL") else "config.yaml"
    return Choice(wanted, provider, *_place(config, provider, environ), source)


def find(config: ModelConfig, *, name: str | None = None) -> Choice | None:
    """What is configured, else the first model of a server that runs here."""
    chosen = choose(config, name=name)
    if chosen is not None:
        return chosen
    for server in local_servers():
        return Choice(server.models[0], "openai", server.base_url, "", f"{server.what} on this machine")
    return None


def build(config: ModelConfig, *, name: str | None = None) -> list[StreamingModel]:
    """The models in the order in which they are asked. Raises ModelError with what to do when there is none."""
    choice = find(config, name=name)
    if choice is None:
        raise ModelError(f"no model is configured; {HOW_TO}")
    others = [_beside(choice, each, config) for each in config.fallbacks if each != choice.name]
    return [(connect if each.provider in PROVIDERS else _brought)(each, config) for each in (choice, *others)]


def build_helper(config: ModelConfig, *, name: str | None = None) -> OpenAIChat | AnthropicMessages | None:
    """The model for small work. None when the one that is asked does it."""
    choice = find(config, name=name) if config.helper else None
    return connect(_beside(choice, config.helper, config), config) if choice is not None else None


def _beside(choice: Choice, name: str, config: ModelConfig) -> Choice:
    """Another model: where the chosen one is, unless its provider is said before its name."""
    said = choose(config, name=name) if name.partition(":")[0] in PROVIDERS else None
    return said or choice._replace(name=name)


def connect(choice: Choice, config: ModelConfig) -> OpenAIChat | AnthropicMessages:
    """The model behind a choice. Nothing is asked yet; raises ModelError when a key is missing."""
    if choice.provider not in PROVIDERS:
        raise ModelError(f"model.provider is {choice.provider}; only {' and '.join(PROVIDERS)} can be looked into")
    key = key_of(choice.key_variable) if choice.key_variable else ""
    if not key and choice.base_url is None:
        raise ModelError(f"{choice.name or choice.provider} needs a key; set {choice.key_variable}")
    settings: dict[str, Any] = {
        "base_url": choice.base_url,
        "api_key": key,
        "key_variable": choice.key_variable or "OPENAI_API_KEY",
        "context_tokens": config.context_tokens,
        "prices": Prices(config.input_price, config.output_price),
    }
    if choice.provider == "anthropic":
        from .anthropic import AnthropicMessages

        return AnthropicMessages(choice.name, **settings)
    from .openai_chat import OpenAIChat

    return OpenAIChat(choice.name, **settings)


def _brought(choice: Choice, config: ModelConfig) -> StreamingModel:
    """The model of a provider that a plugin brings."""
    from ...model_tools import default

    plugins = default().plugins
    known = plugins.contributions.model_providers if plugins is not None else {}
    if choice.provider not in known:
        hint = did_you_mean(choice.provider, [*PROVIDERS, *known])
        raise ModelError(f"unknown model.provider {choice.provider!r}; {hint}")
    key = key_of(choice.key_variable)
    return streaming(
        known[choice.provider](choice.name, base_url=choice.base_url, api_key=key, context_tokens=config.context_tokens)
    )


def provider_of(config: ModelConfig, environ: Mapping[str, str] | None = None) -> Choice:
    """The configured provider, whichever model is asked there."""
    environ = os.environ if environ is None else environ
    chosen = choose(config, environ=environ)
    return chosen or Choice("", config.provider, *_place(config, config.provider, environ), "config.yaml")


def _place(config: ModelConfig, provider: str, environ: Mapping[str, str]) -> tuple[str | None, str]:
    """Its base URL (None: the provider's own), and the variable with its key. What is configured is for one provider."""
    mine = provider == config.provider
    base_url = (config.base_url if mine else "") or environ.get(f"{provider.upper()}_BASE_URL") or None
    return base_url, (config.key_variable if mine else "") or f"{provider.upper()}_API_KEY"
