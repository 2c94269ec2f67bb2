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
    """

    model: str | Callable[..., Any]
    base_url: str = ""
    key_variable: str = ""
    compatible_url: str = ""
    needs_key: bool = True

    @property
    def chat_url(self) -> str:
        """Where the OpenAI-compatible API is; empty if there is none that we know of."""
        return self.compatible_url or self.base_url


_MODELS = "handrail.agent.models.providers"
PROVIDERS = {
    "openai": ProviderSpec(f"{_MODELS}.openai:MODEL", "https://api.openai.com/v1", "OPENAI_API_KEY"),
    "anthropic": ProviderSpec(
        f"{_MODELS}.anthropic:MODEL",
        "https://api.anthropic.com",
        "ANTHROPIC_API_KEY",
        compatible_url="https://api.anthropic.com/v1",
    ),
}
# What servers for local models speak, and what `model.provider` is unless it is set.
DEFAULT_PROVIDER = "openai"
