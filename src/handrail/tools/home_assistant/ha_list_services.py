"""The tool `ha_list_services`: what Home Assistant can do."""

from ...core.builtin import registry, text
from . import tool

_DOMAIN = "^[a-z0-9_]+$"

registry.register(
    **tool(
        "ha_list_services",
        "List what Home Assistant can do. With a domain: each service and what it takes.",
        domain=text("Such as light.", pattern=_DOMAIN),
    ),
    read_only=True,
    example={"domain": "persistent_notification"},
)
