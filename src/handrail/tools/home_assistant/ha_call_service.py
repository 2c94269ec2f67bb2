"""The tool `ha_call_service`: have Home Assistant do something."""

from ...core.builtin import registry, text, tool_schema

registry.register(
    name="ha_call_service",
    toolset="homeassistant",
    schema=tool_schema(
        "Have Home Assistant do something: light.turn_on, climate.set_temperature... The user is asked before anything "
        "that unlocks, opens, disarms or runs code.",
        ("domain", "service"),
        domain=text("Such as light.", pattern="^[a-z0-9_]+$"),
        service=text("Such as turn_on.", pattern="^[a-z0-9_]+$"),
        entity_id=text("What to do it to; several with commas between."),
        data={"type": "object", "description": 'What else it takes, such as {"brightness_pct": 40}.'},
    ),
    handler="handrail.tools.home_assistant.service_calls:ha_call_service",
    check_fn="handrail.tools.home_assistant:check",
    is_async=True,
    emoji="🏠",
    timeout=120,
    resources="handrail.tools.home_assistant.service_calls:resources",
    actions="handrail.tools.home_assistant.service_calls:actions",
    example={
        "domain": "persistent_notification",
        "service": "create",
        "data": {"title": "Door", "message": "It is locked."},
    },
)
