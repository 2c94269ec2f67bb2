"""A client of Home Assistant's REST API."""

from __future__ import annotations

import os
from typing import Any

from ...config.keys import key_of, without_key
from ...errors import ToolFailed, ToolUnavailable
from ...net.http_client import Reply, ask
from ...types import JsonDict, ToolContext, Unavailable
from . import check

_USUAL_URL = "http://homeassistant.local:8123"
_MAX_REPLY_BYTES = 32 * 1024 * 1024  # the states of a big house
_NAME = "Home Assistant"


class Client:
    """One Home Assistant, as the configuration names it. Raises ToolUnavailable when there is no token."""

    def __init__(self, context: ToolContext | None) -> None:
        config = (context or ToolContext()).config
        why = check(config)
        if isinstance(why, Unavailable):
            raise ToolUnavailable(f"Home Assistant is unavailable: {why}", reason=why.reason, fix=why.fix)
        self._url = (config.homeassistant.url or os.environ.get("HASS_URL", "").strip() or _USUAL_URL).rstrip("/")
        self._key, self._seconds = key_of(config.homeassistant.key_variable), config.homeassistant.timeout

    async def states(self) -> list[JsonDict]:
        return _objects(await self.get("states"), "entity_id", "state")

    async def services(self) -> list[JsonDict]:
        return _objects(await self.get("services"), "domain", "services")

    async def state(self, entity_id: str) -> JsonDict | None:
        """None when there is no such entity."""
        reply = await self._ask("GET", f"states/{entity_id}")
        if reply.status == 404 and reply.json() is not None:
            return None
        return _objects([self._good(reply)], "entity_id", "state")[0]

    async def get(self, path: str) -> Any:
        return self._good(await self._ask("GET", path))

    async def area(self, name: str) -> set[str]:
        """The entities of a room, by its name or id; none for an unknown room."""
        template = "{{ area_entities(name) | to_json }}"
        reply = await self._ask("POST", "template", {"template": template, "variables": {"name": name}})
        if reply.status in (401, 403):
            raise ToolFailed(f"only an administrator's token may ask {_NAME} for areas; use query instead")
        found = self._good(reply)
        return {str(each) for each in found} if isinstance(found, list) else set()

    async def call(self, domain: str, service: str, data: JsonDict, *, answers: bool) -> Any:
        """What the service changed; with `answers` also its response."""
        path = f"services/{domain}/{service}{'?return_response' if answers else ''}"
        return self._good(await self._ask("POST", path, data))

    async def _ask(self, method: str, path: str, body: JsonDict | None = None) -> Reply:
        return await ask(
            method,
            f"{self._url}/api/{path}",
            what=_NAME,
            seconds=self._seconds,
            max_bytes=_MAX_REPLY_BYTES,
            headers={"authorization": f"Bearer {self._key}"},
            **({} if body is None else {"json": body}),
        )

    def _good(self, reply: Reply) -> Any:
        if reply.status == 401:
            raise ToolFailed(f"{_NAME} does not accept the token; tell the user", status=401)
        if not reply.is_good:
            failure = reply.failure(_NAME)
            raise ToolFailed(without_key(str(failure), self._key), status=reply.status)
        found = reply.json()
        if found is None:
            raise _not_home_assistant()
        return found


def _objects(found: Any, *names: str) -> list[JsonDict]:
    """Check once, here, what a server sends: it can be anything."""
    good = isinstance(found, list) and all(isinstance(each, dict) and set(names) <= each.keys() for each in found)
    if not good:
        raise _not_home_assistant()
    return list(found)


def _not_home_assistant() -> ToolFailed:
    return ToolFailed(f"the server does not answer like {_NAME}; is homeassistant.url (or HASS_URL) its address?")
