"""The table of model providers: a provider is one file in `handrail.agent.models` and one line here.

It is data only and imports nothing, so that everything that names a provider (agent, media tools, CLI) can read it.
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


# fmt: off
PROVIDERS = {
    "openai": ProviderSpec("handrail.agent.models.openai_chat:OpenAIChat", "https://api.openai.com/v1", "OPENAI_API_KEY"),
    "anthropic": ProviderSpec("handrail.agent.models.anthropic:AnthropicMessages", "https://api.anthropic.com", "ANTHROPIC_API_KEY", compatible_url="https://api.anthropic.com/v1"),  # noqa: E501  one provider per line
}
# fmt: on
# What servers for local models speak, and what `model.provider` is unless it is set.
DEFAULT_PROVIDER = "openai"
