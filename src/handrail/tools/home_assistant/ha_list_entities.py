"""The tool `ha_list_entities`: list lights, sensors, locks and the like."""

from ...core.builtin import registry, text, tool_schema

registry.register(
    name="ha_list_entities",
    toolset="homeassistant",
    schema=tool_schema(
        "List what Home Assistant knows: lights, sensors, locks... with their states.",
        domain=text("Only of a kind, such as light.", pattern="^[a-z0-9_]+$"),
        area=text("Only of a room, by its name."),
        query=text("Only with these words in id or name."),
    ),
    handler="handrail.tools.home_assistant.queries:ha_list_entities",
    check_fn="handrail.tools.home_assistant:check",
    is_async=True,
    emoji="🏠",
    timeout=120,
    read_only=True,
    toolset_description="see and switch things at home",
    example={"domain": "lock"},
)
