"""The tool `ha_list_entities`: what Home Assistant knows."""

from ...core.builtin import registry, text
from . import tool

_DOMAIN = "^[a-z0-9_]+$"

registry.register(
    **tool(
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
