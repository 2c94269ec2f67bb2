"""The tool `ha_get_state`: one entity with its attributes."""

from ...core.builtin import registry, text
from . import tool

registry.register(
    **tool(
        "ha_get_state",
        "Show one entity of Home Assistant with all its attributes.",
        ("entity_id",),
        entity_id=text("Such as light.kitchen.", pattern="^[a-z0-9_]+\\.[a-z0-9_]+$"),
    ),
    read_only=True,
    example={"entity_id": "lock.front_door"},
)
