"""The tools `ha_*`, for Home Assistant. Its services can do anything in a house, so most of them ask the user."""

import os

from ...core.availability import missing, usable_unless
from ...core.builtin import family, registry, text
from ...settings.schema import Config
from ...types import Resources, Unavailable

_tool = family(
    "homeassistant",
    "handrail.tools.home_assistant.calls",
    check_fn="handrail.tools.home_assistant.tool:check",
    is_async=True,
    emoji="🏠",
    timeout=120,
)
_DOMAIN = "^[a-z0-9_]+$"
_HOW_TO = "make a long-lived access token in your Home Assistant profile and set it in the environment"


def check(config: Config) -> Unavailable | bool:
    """The check of these tools. Every listing runs it, so it imports little and asks no server."""
    home = config.homeassistant
    absent = Unavailable(f"{home.key_variable or 'homeassistant.key_variable'} is not set", _HOW_TO)
    if not (home.url or os.environ.get("HASS_URL") or os.environ.get(home.key_variable)):
        return absent
    from ...config.keys import key_of  # which opens a keyring

    return usable_unless(missing("home", "httpx")) if key_of(home.key_variable) else absent


registry.register(
    **_tool(
        "ha_call_service",
        "Have Home Assistant do something: light.turn_on, climate.set_temperature... The user is asked before anything "
        "that unlocks, opens, disarms or runs code.",
        ("domain", "service"),
        domain=text("Such as light.", pattern=_DOMAIN),
        service=text("Such as turn_on.", pattern=_DOMAIN),
        entity_id=text("What to do it to; several with commas between."),
        data={"type": "object", "description": 'What else it takes, such as {"brightness_pct": 40}.'},
    ),
    resources=lambda _: Resources(writes=("home assistant",)),  # one after the other, in the model's order
    actions="handrail.tools.home_assistant.calls:actions",
    example={
        "domain": "persistent_notification",
        "service": "create",
        "data": {"title": "Door", "message": "It is locked."},
    },
)
registry.register(
    **_tool(
        "ha_get_state",
        "Show one entity of Home Assistant with all its attributes.",
        ("entity_id",),
        entity_id=text("Such as light.kitchen.", pattern="^[a-z0-9_]+\\.[a-z0-9_]+$"),
    ),
    read_only=True,
    example={"entity_id": "lock.front_door"},
)
registry.register(
    **_tool(
        "ha_list_entities",
        "List what Home Assistant knows: lights, sensors, locks... with their states.",
        domain=text("Only of a kind, such as light.", pattern=_DOMAIN),
        area=text("Only of a room, by its name."),
        query=text("Only with these words in id or name."),
    ),
    read_only=True,
    toolset_description="see and switch things at home",
    example={"domain": "lock"},
)
registry.register(
    **_tool(
        "ha_list_services",
        "List what Home Assistant can do. With a domain: each service and what it takes.",
        domain=text("Such as light.", pattern=_DOMAIN),
    ),
    read_only=True,
    example={"domain": "persistent_notification"},
)
