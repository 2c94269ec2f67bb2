"""The tools of Home Assistant, `ha_*`. Its services can do anything in a house, so most of them ask the user."""

from ...core.builtin import family, registry, text

_tool = family(
    "homeassistant",
    "handrail.tools.home_assistant.calls",
    check_fn="handrail.tools.home_assistant:check",
    is_async=True,
    emoji="🏠",
    timeout=120,
)
_DOMAIN = "^[a-z0-9_]+$"

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
        "ha_list_services",
        "List what Home Assistant can do. With a domain: each service and what it takes.",
        domain=text("Such as light.", pattern=_DOMAIN),
    ),
    read_only=True,
    example={"domain": "persistent_notification"},
)
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
    resources="handrail.tools.home_assistant.calls:resources",
    actions="handrail.tools.home_assistant.calls:actions",
    example={
        "domain": "persistent_notification",
        "service": "create",
        "data": {"title": "Door", "message": "It is locked."},
    },
)
