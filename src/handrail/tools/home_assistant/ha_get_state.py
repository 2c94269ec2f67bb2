"""The tool `ha_get_state`: show one entity."""

from __future__ import annotations

from ...core.builtin import registry

registry.register(
    name="ha_get_state",
    toolset="homeassistant",
    schema={
        "description": "Show one entity of Home Assistant with all its attributes.",
        "parameters": {
            "type": "object",
            "properties": {
                "entity_id": {
                    "type": "string",
                    "pattern": r"^[a-z0-9_]+\.[a-z0-9_]+$",
                    "description": "Such as light.kitchen.",
                }
            },
            "required": ["entity_id"],
        },
    },
    handler="handrail.tools.home_assistant.queries:ha_get_state",
    check_fn="handrail.tools.home_assistant:check",
    is_async=True,
    emoji="🏠",
    timeout=120,
    read_only=True,
    example={"entity_id": "lock.front_door"},
)
