"""The tool `ha_list_services`: list the services that can be called."""

from ...core.builtin import registry, text, tool_schema

registry.register(
    name="ha_list_services",
    toolset="homeassistant",
    schema=tool_schema(
        "List what Home Assistant can do. With a domain: each service and what it takes.",
        domain=text("Such as light.", pattern="^[a-z0-9_]+$"),
    ),
    handler="handrail.tools.home_assistant.queries:ha_list_services",
    check_fn="handrail.tools.home_assistant:check",
    is_async=True,
    emoji="🏠",
    timeout=120,
    read_only=True,
    example={"domain": "persistent_notification"},
)
