"""Users of the chat gateway: pairing codes, paired users, and removing them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import TypeVar

from ...config.paths import state_dir
from ...types import JsonDict
from ..endpoint import Endpoint, HttpError, RequestContext
from ..gateway.store import CODE_SECONDS, STORE_NAME, GatewayStore
from ..tokens import Role
from .shapes import NUMBER, TEXT, many, record

T = TypeVar("T")


async def _in_store(work: Callable[[GatewayStore], T]) -> T:
    def run() -> T:
        with contextlib.closing(GatewayStore(state_dir() / STORE_NAME)) as store:
            return work(store)

    return await asyncio.to_thread(run)


async def new_code(_: RequestContext) -> JsonDict:
    """A pairing code, which a user sends to the agent's account in a chat. It works once, within a few minutes."""
    return {"code": await _in_store(GatewayStore.new_code), "seconds": CODE_SECONDS}


async def people(_: RequestContext) -> JsonDict:
    """The paired users."""
    found = await _in_store(GatewayStore.people)
    return {"people": [{"account": each.adapter, "person": each.person, "paired_at": each.paired} for each in found]}


async def remove(context: RequestContext) -> JsonDict:
    """Unpair a user."""
    account, person = context.path["account"], context.path["person"]
    if not await _in_store(lambda store: store.unpair(account, person)):
        raise HttpError(404, "not_found", "no such user is paired")
    return {"removed": person}


_PERSON = record(account=TEXT, person=TEXT, paired_at=NUMBER)

ENDPOINTS = (
    Endpoint("GET", "/v1/people", people, answer=record(people=many(_PERSON))),
    Endpoint("POST", "/v1/people/codes", new_code, role=Role.OPERATE, answer=record(code=TEXT, seconds=NUMBER)),
    Endpoint("DELETE", "/v1/people/{account}/{person:path}", remove, role=Role.OPERATE, answer=record(removed=TEXT)),
)
