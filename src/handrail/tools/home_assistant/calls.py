"""Run the calls of the `ha_*` tools."""

from __future__ import annotations

import re
from typing import Any

from ...base.suggest import nearest
from ...core.outcome import tool_result
from ...errors import InvalidArguments, ToolFailed
from ...protocols import Action
from ...types import JsonDict, Resources, ToolContext
from .client import Client
from .safe_services import entities_of, question

_MAX_ENTITIES = 100
_MAX_TEXT_CHARS = 200
_ENTITY = re.compile(r"[a-z0-9_]+\.[a-z0-9_]+")
_EVERYTHING = ("all", "none")


async def ha_list_entities(args: JsonDict, *, context: ToolContext | None = None, **_: object) -> str:
    client = Client(context)
    area, words = args.get("area", "").strip(), args.get("query", "").lower().split()
    found = await client.states()
    if args.get("domain"):
        found = [state for state in found if str(state["entity_id"]).startswith(f"{args['domain']}.")]
    if area:
        inside = await client.area(area)
        found = [state for state in found if state["entity_id"] in inside]
    shown = [_short(state) for state in found]
    if words:
        texts = [f"{each['entity_id']} {each.get('name', '')}".lower() for each in shown]
        shown = [each for each, text in zip(shown, texts, strict=True) if all(word in text for word in words)]
    answer: JsonDict = {"entities": shown[:_MAX_ENTITIES], "total": len(shown)}
    if len(shown) > _MAX_ENTITIES:
        answer["hint"] = f"the first {_MAX_ENTITIES} of {len(shown)}; ask for a domain, an area or words"
    elif not shown:
        answer["hint"] = "nothing matches; leave out domain, area or query"
    return tool_result(answer)


async def ha_get_state(args: JsonDict, *, context: ToolContext | None = None, **_: object) -> str:
    client, entity_id = Client(context), args["entity_id"]
    state = await client.state(entity_id)
    if state is None:
        raise await unknown_entity(client, entity_id)
    kept = ("entity_id", "state", "attributes", "last_changed", "last_updated")
    return tool_result({name: state[name] for name in kept if name in state})


async def ha_list_services(args: JsonDict, *, context: ToolContext | None = None, **_: object) -> str:
    domain = args.get("domain", "")
    by_domain = {str(each["domain"]): each["services"] for each in await Client(context).services()}
    if not domain:
        return tool_result(services={name: sorted(services) for name, services in sorted(by_domain.items())})
    if domain not in by_domain:
        near = nearest(domain, by_domain)
        raise InvalidArguments(
            f"Home Assistant has no services of the domain {domain!r}", argument="domain", did_you_mean=near
        )
    return tool_result(services={f"{domain}.{name}": _service(about) for name, about in by_domain[domain].items()})


async def unknown_entity(client: Client, entity_id: str) -> ToolFailed:
    near = nearest(entity_id, [str(state["entity_id"]) for state in await client.states()])
    advice = f"did you mean {near}?" if near else "list the entities first"
    return ToolFailed(f"Home Assistant has no entity {entity_id!r}; {advice}")


def _short(state: JsonDict) -> JsonDict:
    attributes = state.get("attributes") or {}
    shown = {
        "entity_id": state["entity_id"],
        "state": _cut(state["state"]),
        "unit": attributes.get("unit_of_measurement"),
        "name": _cut(attributes.get("friendly_name")),
    }
    return {name: value for name, value in shown.items() if value}


def _service(about: JsonDict) -> JsonDict:
    fields = about.get("fields") or {}
    takes = {name: _field(field) for name, field in fields.items() if isinstance(field, dict)}
    answer: JsonDict = {"description": _cut(about.get("description") or about.get("name")), "takes": takes}
    if about.get("response"):
        answer["answers"] = True
    return answer


def _field(field: JsonDict) -> str:
    """A field in one line. For a field that holds others, their names."""
    if isinstance(field.get("fields"), dict):
        return f"more: {', '.join(field['fields'])}"
    example = field.get("example")
    parts = [
        "(required)" if field.get("required") else "",
        str(field.get("description") or field.get("name") or ""),
        f"such as {example}" if example not in (None, "") else "",
    ]
    return _cut(" ".join(part for part in parts if part))


def _cut(text: object) -> str:
    shown = str(text or "")
    return shown if len(shown) <= _MAX_TEXT_CHARS else f"{shown[:_MAX_TEXT_CHARS]}…"


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
