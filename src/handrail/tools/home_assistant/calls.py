"""Run the calls of the `ha_*` tools, by Home Assistant's REST API, and say which may be made without asking. The user is asked
about what unlocks, opens or disarms, what runs code or automations, what restarts, updates or changes Home Assistant itself,
and every service of a third-party integration: what is not known to be harmless."""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...base.suggest import nearest
from ...config.keys import key_of, without_key
from ...core.outcome import tool_result
from ...errors import InvalidArguments, ToolFailed, ToolUnavailable
from ...net.http_client import Reply, ask
from ...protocols import Action, ActionKind
from ...types import JsonDict, ToolContext, Unavailable
from . import check

_MAX_ENTITIES = 100
_MAX_TEXT_CHARS = 200
_ENTITY = re.compile(r"[a-z0-9_]+\.[a-z0-9_]+")
_EVERYTHING = ("all", "none")
_USUAL_URL = "http://homeassistant.local:8123"
_MAX_REPLY_BYTES = 32 * 1024 * 1024  # the states of a big house
_NAME = "Home Assistant"
_FOREIGN = f"the server does not answer like {_NAME}; is homeassistant.url (or HASS_URL) its address?"
# The domains whose services only switch, set, show or say something, single services that do, and why others ask.
_KNOWN = json.loads(Path(__file__).with_name("safe_services.json").read_text())
_DOMAINS = frozenset(" ".join(_KNOWN["harmless_domains"]).split())
_SERVICES = frozenset(" ".join(_KNOWN["harmless_services"]).split())
_WHY = {domain: why for domains, why in _KNOWN["why_others_ask"].items() for domain in domains.split()}
# These act on an entity as the service of its own domain would.
_FOR_ANY_DOMAIN = frozenset({"homeassistant.turn_on", "homeassistant.turn_off", "homeassistant.toggle"})


class Client:
    """One Home Assistant, as the configuration names it. Raises ToolUnavailable when there is no token."""

    def __init__(self, context: ToolContext) -> None:
        config = context.config
        why = check(config)
        if isinstance(why, Unavailable):
            raise ToolUnavailable(f"Home Assistant is unavailable: {why}", reason=why.reason, fix=why.fix)
        self._url = (config.homeassistant.url or os.environ.get("HASS_URL", "").strip() or _USUAL_URL).rstrip("/")
        self._key, self._seconds = key_of(config.homeassistant.key_variable), config.homeassistant.timeout

    async def states(self) -> list[JsonDict]:
        return _objects(self._good(await self._ask("GET", "states")), "entity_id", "state")

    async def services(self) -> list[JsonDict]:
        return _objects(self._good(await self._ask("GET", "services")), "domain", "services")

    async def state(self, entity_id: str) -> JsonDict | None:
        reply = await self._ask("GET", f"states/{entity_id}")
        if reply.status == 404 and reply.json() is not None:
            return None
        return _objects([self._good(reply)], "entity_id", "state")[0]

    async def area(self, name: str) -> set[str]:
        """The entities of a room, by its name or id; none for an unknown room."""
        template = "{{ area_entities(name) | to_json }}"
        reply = await self._ask("POST", "template", {"template": template, "variables": {"name": name}})
        if reply.status in (401, 403):
            raise ToolFailed(f"only an administrator's token may ask {_NAME} for areas; use query instead")
        found = self._good(reply)
        return {str(each) for each in found} if isinstance(found, list) else set()

    async def call(self, domain: str, service: str, data: JsonDict, *, answers: bool) -> Any:
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
        if (found := reply.json()) is None:
            raise ToolFailed(_FOREIGN)
        return found


def _objects(found: Any, *names: str) -> list[JsonDict]:
    """Check once, here, what a server sends: it can be anything."""
    good = isinstance(found, list) and all(isinstance(each, dict) and set(names) <= each.keys() for each in found)
    if not good:
        raise ToolFailed(_FOREIGN)
    return list(found)


async def ha_list_entities(args: JsonDict, *, context: ToolContext, **_: object) -> str:
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


async def ha_get_state(args: JsonDict, *, context: ToolContext, **_: object) -> str:
    client, entity_id = Client(context), args["entity_id"]
    if (state := await client.state(entity_id)) is None:
        raise await unknown_entity(client, entity_id)
    kept = ("entity_id", "state", "attributes", "last_changed", "last_updated")
    return tool_result({name: state[name] for name in kept if name in state})


async def ha_list_services(args: JsonDict, *, context: ToolContext, **_: object) -> str:
    domain = args.get("domain", "")
    by_domain = {str(each["domain"]): each["services"] for each in await Client(context).services()}
    if not domain:
        return tool_result(services={name: sorted(services) for name, services in sorted(by_domain.items())})
    if domain not in by_domain:
        about = {"argument": "domain", "did_you_mean": nearest(domain, by_domain)}
        raise InvalidArguments(f"Home Assistant has no services of the domain {domain!r}", **about)
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


async def ha_call_service(args: JsonDict, *, context: ToolContext, **_: object) -> str:
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


def question(service: str, data: Mapping[str, object]) -> Action | None:
    """The question for the gate about a call of `service` (`domain.name`); None for a harmless one."""
    entities, domain = entities_of(data), service.partition(".")[0]
    if service in _FOR_ANY_DOMAIN:
        known = all(entity.partition(".")[0] in _DOMAINS for entity in entities)
        is_harmless = bool(entities) and known and data.keys() == {"entity_id"}
    else:
        is_harmless = service in _SERVICES or domain in _DOMAINS
    if is_harmless:
        return None
    why = _WHY.get(domain, "it is not known to be harmless")
    details: JsonDict = {"why": f"{service} in Home Assistant: {why}"}
    others = {name: value for name, value in data.items() if name != "entity_id"}
    if entities and not others:  # a lasting approval covers these entities, and no other data
        details["rule"] = ".".join(["home", service, *sorted(entities)])
    text = f"{service} on {', '.join(entities)}" if entities else service
    if others:
        text += f"\n{json.dumps(others, ensure_ascii=False)}"
    return Action(ActionKind.TOOL, text, environment="Home Assistant", details=details)


def entities_of(data: Mapping[str, object]) -> list[str]:
    """The entities that a call names, whether as a list or with commas between them."""
    named = data.get("entity_id")
    parts = named if isinstance(named, list) else str(named or "").split(",")
    return [str(part).strip() for part in parts if str(part).strip()]
