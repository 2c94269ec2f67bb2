"""Users of the chat gateway: pairing codes, paired users, and removing them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator

from ...config.paths import state_dir
from ...types import JsonDict
from ..endpoint import Endpoint, HttpError, RequestContext
from ..gateway.store import CODE_SECONDS, STORE_NAME, GatewayStore
from ..tokens import Role
from .shapes import NUMBER, TEXT, many, record


@contextlib.contextmanager
def _store() -> Iterator[GatewayStore]:
    with contextlib.closing(GatewayStore(state_dir() / STORE_NAME)) as store:
        yield store


async def new_code(context: RequestContext) -> JsonDict:  # noqa: ARG001  handlers take it
    """A pairing code, which a user sends to the agent's account in a chat. It works once, within a few minutes."""

    def make() -> str:
        with _store() as store:
            return store.new_code()

    return {"code": await asyncio.to_thread(make), "seconds": CODE_SECONDS}


async def people(context: RequestContext) -> JsonDict:  # noqa: ARG001  handlers take it
    """The paired users."""

    def found() -> list[JsonDict]:
        with _store() as store:
            return [
                {"account": each.adapter, "person": each.person, "paired_at": each.paired} for each in store.people()
            ]

    return {"people": await asyncio.to_thread(found)}


async def remove(context: RequestContext) -> JsonDict:
    """Unpair a user."""

    def unpair() -> bool:
        with _store() as store:
            return store.unpair(context.path["account"], context.path["person"])

    if not await asyncio.to_thread(unpair):
        raise HttpError(404, "not_found", "no such user is paired")
    return {"removed": context.path["person"]}


_PERSON = record(account=TEXT, person=TEXT, paired_at=NUMBER)

ENDPOINTS = (
    Endpoint("GET", "/v1/people", people, answer=record(people=many(_PERSON))),
    Endpoint("POST", "/v1/people/codes", new_code, role=Role.OPERATE, answer=record(code=TEXT, seconds=NUMBER)),
    Endpoint("DELETE", "/v1/people/{account}/{person:path}", remove, role=Role.OPERATE, answer=record(removed=TEXT)),
)
