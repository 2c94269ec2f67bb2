"""`ha_*`: see and switch what Home Assistant knows."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ...core.availability import usable_unless
from ...core.builtin import registry
from ...types import JsonDict, Resources, Unavailable
from . import HOW_TO

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...protocols import Action
    from ...types import ToolContext

_ENTITIES = 100
_ENTITY = r"^[a-z0-9_]+\.[a-z0-9_]+$"
_NAME = r"^[a-z0-9_]+$"


async def ha_list_entities(args: JsonDict, *, context: ToolContext | None = None, **_: object) -> str:
    from .queries import list_entities

    return await list_entities(args, context, limit=_ENTITIES)


async def ha_get_state(args: JsonDict, *, context: ToolContext | None = None, **_: object) -> str:
    from .queries import get_state

    return await get_state(args["entity_id"], context)


async def ha_list_services(args: JsonDict, *, context: ToolContext | None = None, **_: object) -> str:
    from .queries import list_services

    return await list_services(args.get("domain", ""), context)


async def ha_call_service(args: JsonDict, *, context: ToolContext | None = None, **_: object) -> str:
    from .service_calls import call_service

    return await call_service(args, context)


def _check() -> Unavailable | bool:
    from ...config import load_config

    config = load_config()
    home = config.homeassistant
    # Most people have none: nothing more is imported, and no keyring opened, to say so.
    if not (home.url or os.environ.get("HASS_URL") or os.environ.get(home.key_variable)):
        return Unavailable(f"{home.key_variable or 'homeassistant.key_variable'} is not set", HOW_TO)
    from .client import lack

    return usable_unless(lack(config))


def _actions(args: JsonDict, _: ToolContext) -> Sequence[Action]:
    from .safe_services import question
    from .service_calls import data_of

    asked = question(f"{args['domain']}.{args['service']}", data_of(args))
    return [] if asked is None else [asked]


def _resources(_: JsonDict, __: ToolContext | None = None) -> Resources:
    return Resources(writes=("home assistant",))  # one after the other, in the model's order


def _object(required: tuple[str, ...] = (), **properties: JsonDict) -> JsonDict:
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {})}


_COMMON: dict[str, Any] = {
    "toolset": "homeassistant",
    "check_fn": _check,
    "is_async": True,
    "emoji": "🏠",
    "timeout": 120,
}

registry.register(
    name="ha_list_entities",
    schema={
        "description": "List what Home Assistant knows: lights, sensors, locks... with their states.",
        "parameters": _object(
            domain={"type": "string", "pattern": _NAME, "description": "Only of a kind, such as light."},
            area={"type": "string", "description": "Only of a room, by its name."},
            query={"type": "string", "description": "Only with these words in id or name."},
        ),
    },
    handler=ha_list_entities,
    read_only=True,
    **_COMMON,
)
registry.register(
    name="ha_get_state",
    schema={
        "description": "Show one entity of Home Assistant with all its attributes.",
        "parameters": _object(
            ("entity_id",), entity_id={"type": "string", "pattern": _ENTITY, "description": "Such as light.kitchen."}
        ),
    },
    handler=ha_get_state,
    read_only=True,
    **_COMMON,
)
registry.register(
    name="ha_list_services",
    schema={
        "description": "List what Home Assistant can do. With a domain: each service and what it takes.",
        "parameters": _object(domain={"type": "string", "pattern": _NAME, "description": "Such as light."}),
    },
    handler=ha_list_services,
    read_only=True,
    **_COMMON,
)
registry.register(
    name="ha_call_service",
    schema={
        "description": (
            "Have Home Assistant do something: light.turn_on, climate.set_temperature... The person is asked before anything "
            "that unlocks, opens, disarms or runs code."
        ),
        "parameters": _object(
            ("domain", "service"),
            domain={"type": "string", "pattern": _NAME, "description": "Such as light."},
            service={"type": "string", "pattern": _NAME, "description": "Such as turn_on."},
            entity_id={"type": "string", "description": "What to do it to; several with commas between."},
            data={"type": "object", "description": 'What else it takes, such as {"brightness_pct": 40}.'},
        ),
    },
    handler=ha_call_service,
    resources=_resources,
    actions=_actions,
    **_COMMON,
)
