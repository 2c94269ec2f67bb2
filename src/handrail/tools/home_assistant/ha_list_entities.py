"""The tool `ha_list_entities`: list lights, sensors, locks and the like."""

from __future__ import annotations

from ...core.builtin import registry

registry.register(
    name="ha_list_entities",
    toolset="homeassistant",
    schema={
        "description": "List what Home Assistant knows: lights, sensors, locks... with their states.",
        "parameters": {
            "type": "object",
            "properties": {
                "domain": {
                    "type": "string",
                    "pattern": "^[a-z0-9_]+$",
                    "description": "Only of a kind, such as light.",
                },
                "area": {"type": "string", "description": "Only of a room, by its name."},
                "query": {"type": "string", "description": "Only with these words in id or name."},
            },
        },
    },
    handler="handrail.tools.home_assistant.queries:ha_list_entities",
    check_fn="handrail.tools.home_assistant:check",
    is_async=True,
    emoji="🏠",
    timeout=120,
    read_only=True,
    toolset_description="see and switch things at home",
    example={"domain": "lock"},
)
