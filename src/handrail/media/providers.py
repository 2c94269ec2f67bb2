"""Ask models beside the agent's own, at any server with an OpenAI-compatible API."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from ..config.keys import key_of, without_key
from ..core.availability import missing
from ..errors import ToolFailed, ToolUnavailable
from ..settings.services import PROVIDERS
from ..types import Unavailable

if TYPE_CHECKING:
    from ..net.http_client import Reply
    from ..settings.schema import Config

_MAX_ANSWER_BYTES = 8 * 1024 * 1024


class Place(NamedTuple):
    """A model at its provider. `key` is never shown: only `label` is."""

    model: str
    base_url: str
    key_variable: str
    needs_key: bool

    @property
    def label(self) -> str:
        return f"the model {self.model!r}"


def place_of(name: str, config: Config) -> Place:
    """`NAME:MODEL` at a configured or known provider, or `MODEL` where the agent's own is. The `base_url` is empty if the
    provider has no OpenAI-compatible API that we know of."""
    said, _, rest = name.partition(":")
    if rest and said in config.media.providers:
        provider = config.media.providers[said]
        return Place(rest, provider.base_url.rstrip("/"), provider.key_variable, needs_key=bool(provider.key_variable))
    mine = config.model.provider
    kind, model = (said, rest) if rest and said in PROVIDERS else (mine, name)
    own = (config.model.base_url if kind == mine else "") or os.environ.get(f"{kind.upper()}_BASE_URL", "")
    known = PROVIDERS.get(kind)
    variable = (config.model.key_variable if kind == mine else "") or (known.key_variable if known else "")
    return Place(model, (own or (known.chat_url if known else "")).rstrip("/"), variable, needs_key=not own)


def why_not(name: str, config: Config) -> Unavailable | None:
    """Why the model cannot be asked; None when nothing that can be checked here is missing."""
    why = _cannot_ask(place_of(name, config))  # which is falsy, whatever it says
    return missing("media", "httpx") if why is None else why


def _cannot_ask(place: Place) -> Unavailable | None:
    if not place.base_url:
        fix = "name its server under media.providers in config.yaml"
        return Unavailable(f"{place.label} has no known address", fix)
    if place.needs_key and not key_of(place.key_variable):
        return Unavailable(f"{place.key_variable} is not set, the key for {place.model}", "set it in the environment")
    return None


async def post(
    place: Place, path: str, body: dict[str, Any], *, config: Config, max_bytes: int = _MAX_ANSWER_BYTES
) -> Reply:
    """A successful reply. Raises ToolUnavailable when the model cannot be asked, and ToolFailed or CallTimeout otherwise."""
    from ..net.http_client import NotReached, ask

    if (why := _cannot_ask(place)) is not None:
        raise ToolUnavailable(f"{why}; tell the user", reason=why.reason, fix=why.fix)
    key = key_of(place.key_variable)
    try:
        reply = await ask(
            "POST",
            place.base_url + path,
            what=place.label,
            seconds=config.media.timeout,
            max_bytes=max_bytes,
            headers={"authorization": f"Bearer {key}"} if key else None,
            json={"model": place.model, **body},
        )
    except NotReached as error:
        raise ToolUnavailable(str(error)) from None
    if not reply.is_good:
        failure = reply.failure(place.label)
        raise ToolFailed(without_key(str(failure), key), status=reply.status)
    return reply


async def chat(place: Place, messages: list[dict[str, Any]], *, config: Config, **more: Any) -> str:
    reply = await post(place, "/chat/completions", {"messages": messages, **more}, config=config)
    return reply.completion(place.label)
