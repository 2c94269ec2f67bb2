"""Run a call of `ha_call_service`."""

from __future__ import annotations

import re
from typing import Any

from ...core.outcome import tool_result
from ...errors import InvalidArguments, ToolFailed
from ...protocols import Action
from ...types import JsonDict, Resources, ToolContext
from .client import Client
from .queries import unknown_entity
from .safe_services import entities_of, question

_ENTITY = re.compile(r"[a-z0-9_]+\.[a-z0-9_]+")
_EVERYTHING = ("all", "none")


def data_of(args: JsonDict) -> JsonDict:
    """What the service is given. Raises InvalidArguments for entities that are named twice or not by an id."""
    data = dict(args.get("data") or {})
    if args.get("entity_id"):
        if "entity_id" in data:
            raise InvalidArguments("give entity_id beside data, or in it, not both", argument="entity_id")
        data["entity_id"] = args["entity_id"]
    for name in entities_of(data):
        if name not in _EVERYTHING and not _ENTITY.fullmatch(name):
            raise InvalidArguments(f"{name!r} is not an entity id; those look like light.kitchen", argument="entity_id")
    if "entity_id" in data:
        data["entity_id"] = entities_of(data)
    return data


def actions(args: JsonDict, _: ToolContext) -> list[Action]:
    asked = question(f"{args['domain']}.{args['service']}", data_of(args))
    return [] if asked is None else [asked]


def resources(_: JsonDict, __: ToolContext | None = None) -> Resources:
    return Resources(writes=("home assistant",))  # one after the other, in the model's order


async def ha_call_service(args: JsonDict, *, context: ToolContext | None = None, **_: object) -> str:
    client, data = Client(context), data_of(args)
    domain, service = args["domain"], args["service"]
    for entity in entities_of(data):
        # Home Assistant does not report entities that it does not know.
        if entity not in _EVERYTHING and await client.state(entity) is None:
            raise await unknown_entity(client, entity)
    answers = await _answers(client, domain, service)
    try:
        done = await client.call(domain, service, data, answers=answers)
    except ToolFailed as error:
        if error.details.get("status") in (400, 500):
            advice = f"it may not take these arguments; ha_list_services with domain {domain} shows what it takes"
            raise ToolFailed(f"{error}; {advice}", **error.details) from None
        raise
    return tool_result(_result(f"{domain}.{service}", done))


async def _answers(client: Client, domain: str, service: str) -> bool:
    """Whether the service has a response. Raises InvalidArguments for an unknown service."""
    by_domain = {each["domain"]: each["services"] for each in await client.services()}
    known = by_domain.get(domain, {})
    if service not in known:
        has = f"{domain} has: {', '.join(sorted(known))}" if known else f"domains: {', '.join(sorted(by_domain))}"
        raise InvalidArguments(f"Home Assistant has no service {domain}.{service}; {has}", argument="service")
    return bool(known[service].get("response"))


def _result(service: str, done: Any) -> JsonDict:
    answer: JsonDict = {"called": service}
    if isinstance(done, dict):
        answer["response"] = done.get("service_response")
        done = done.get("changed_states")
    states = [each for each in done if isinstance(each, dict)] if isinstance(done, list) else []
    answer["changed"] = [{"entity_id": each.get("entity_id"), "state": each.get("state")} for each in states]
    return answer
