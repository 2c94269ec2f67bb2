"""Which models an agent asks: from the configuration, the environment, or a server that runs on this machine."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from ...errors import ModelError
from .base import StreamingModel

if TYPE_CHECKING:
    from ...config.services import ModelConfig

# Where servers for local models listen when nobody tells them otherwise: Ollama, LM Studio, llama.cpp, vLLM.
LOCAL_SERVERS = {11434: "Ollama", 1234: "LM Studio", 8080: "llama.cpp", 8000: "vLLM"}
HOW_TO = "set HANDRAIL_MODEL and OPENAI_API_KEY, and OPENAI_BASE_URL for another provider; or `handrail config set model.name X`"


class Choice(NamedTuple):
    """A model and where it is. `source` says for people why it was chosen."""

    name: str
    provider: str
    base_url: str | None
    key_variable: str
    source: str


def choose(config: ModelConfig, *, name: str | None = None, environ: Mapping[str, str] | None = None) -> Choice | None:
    """What is configured; `name` is what a person asked for. None when nothing is."""
    environ = os.environ if environ is None else environ
    provider = config.provider
    wanted = name or environ.get("HANDRAIL_MODEL") or config.name
    base_url = config.base_url or environ.get(f"{provider.upper()}_BASE_URL") or None
    if not wanted:
        return None
    where = "asked for" if name else "HANDRAIL_MODEL" if environ.get("HANDRAIL_MODEL") else "config.yaml"
    return Choice(wanted, provider, base_url, config.key_variable or f"{provider.upper()}_API_KEY", where)


def build(config: ModelConfig, *, name: str | None = None) -> list[StreamingModel]:
    """The models in the order in which they are asked. Raises ModelError with what to do when there is none."""
    choice = choose(config, name=name)
    if choice is None:
        raise ModelError(f"no model is configured; {HOW_TO}")
    names = [choice.name, *(each for each in config.fallbacks if each != choice.name)]
    return [_model(choice._replace(name=each), config) for each in names]


def local_servers() -> list[tuple[str, str]]:
    """Names and base URLs of the servers for local models that answer on this machine."""
    return [(name, f"http://127.0.0.1:{port}/v1") for port, name in LOCAL_SERVERS.items() if _listens(port)]


def key_of(variable: str) -> str:
    """A key from the environment, else from the system's keyring where there is one. It is kept nowhere else."""
    key = os.environ.get(variable, "")
    if key:
        return key
    try:
        import keyring  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        return ""
    try:
        return keyring.get_password("handrail", variable) or ""
    except Exception:  # noqa: BLE001  a keyring may fail in any way, and then there is no key
        return ""


def _model(choice: Choice, config: ModelConfig) -> StreamingModel:
    key = key_of(choice.key_variable)
    if not key and choice.base_url is None:
        raise ModelError(f"{choice.name} needs a key; set {choice.key_variable}")
    if choice.provider == "anthropic":
        from .anthropic import AnthropicMessages

        return AnthropicMessages(
            choice.name, base_url=choice.base_url, api_key=key, context_tokens=config.context_tokens
        )
    from .openai_chat import OpenAIChat

    return OpenAIChat(choice.name, base_url=choice.base_url, api_key=key, context_tokens=config.context_tokens)


def _listens(port: int) -> bool:
    with socket.socket() as client:
        client.settimeout(0.2)
        return client.connect_ex(("127.0.0.1", port)) == 0
