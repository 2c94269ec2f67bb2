"""The tool `ha_call_service`: have Home Assistant do something."""

from __future__ import annotations

from ...core.builtin import registry

registry.register(
    name="ha_call_service",
    toolset="homeassistant",
    schema={
        "description": (
            "Have Home Assistant do something: light.turn_on, climate.set_temperature... The user is asked before anything "
            "that unlocks, opens, disarms or runs code."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "domain": {"type": "string", "pattern": "^[a-z0-9_]+$", "description": "Such as light."},
                "service": {"type": "string", "pattern": "^[a-z0-9_]+$", "description": "Such as turn_on."},
                "entity_id": {"type": "string", "description": "What to do it to; several with commas between."},
                "data": {"type": "object", "description": 'What else it takes, such as {"brightness_pct": 40}.'},
            },
            "required": ["domain", "service"],
        },
    },
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
