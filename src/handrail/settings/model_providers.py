"""The table of model providers whose addresses are known, so that everything that names a provider can read them.

A provider with an OpenAI-compatible API is one line here. One with an API of its own is one file in
`handrail.agent.models.providers`; it needs a line here only if it has an OpenAI-compatible API too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class ProviderSpec(NamedTuple):
    """How the models of a provider are reached.

    `model` makes a model from its name and settings: a callable, or a reference `"module:name"` to one.
    `base_url` is the provider's own server, `compatible_url` its OpenAI-compatible API where that is elsewhere.
    `names` are the beginnings of the names of its models, by which it is found when only a model is given.
    """

    model: str | Callable[..., Any]
    base_url: str = ""
    key_variable: str = ""
    compatible_url: str = ""
    needs_key: bool = True
    names: tuple[str, ...] = ()

    @property
    def chat_url(self) -> str:
        """Where the OpenAI-compatible API is; empty if there is none that we know of."""
        return self.compatible_url or self.base_url


_MODELS = "handrail.agent.models.providers"


def _compatible(base_url: str, key_variable: str, *names: str) -> ProviderSpec:
    return ProviderSpec(f"{_MODELS}.openai:MODEL", base_url, key_variable, names=names)


PROVIDERS = {
    "openai": _compatible("https://api.openai.com/v1", "OPENAI_API_KEY", "gpt-", "chatgpt-", "o1", "o3", "o4"),
    "anthropic": ProviderSpec(
        f"{_MODELS}.anthropic:MODEL",
        "https://api.anthropic.com",
        "ANTHROPIC_API_KEY",
        compatible_url="https://api.anthropic.com/v1",
        names=("claude",),
    ),
    "gemini": _compatible("https://generativelanguage.googleapis.com/v1beta/openai/", "GEMINI_API_KEY", "gemini-"),
    "mistral": _compatible("https://api.mistral.ai/v1", "MISTRAL_API_KEY", "mistral-", "codestral-", "devstral-"),
    "deepseek": _compatible("https://api.deepseek.com/v1", "DEEPSEEK_API_KEY", "deepseek-"),
    "xai": _compatible("https://api.x.ai/v1", "XAI_API_KEY", "grok-"),
    "groq": _compatible("https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    "openrouter": _compatible("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
}
# What servers for local models speak, and what `model.provider` is unless it is set.
DEFAULT_PROVIDER = "openai"
