"""The tool `ha_get_state`: show one entity."""

from ...core.builtin import registry, text, tool_schema

registry.register(
    name="ha_get_state",
    toolset="homeassistant",
    schema=tool_schema(
        "Show one entity of Home Assistant with all its attributes.",
        ("entity_id",),
        entity_id=text("Such as light.kitchen.", pattern="^[a-z0-9_]+\\.[a-z0-9_]+$"),
    ),
    handler="handrail.tools.home_assistant.queries:ha_get_state",
    check_fn="handrail.tools.home_assistant:check",
    is_async=True,
    emoji="🏠",
    timeout=120,
    read_only=True,
    example={"entity_id": "lock.front_door"},
)
