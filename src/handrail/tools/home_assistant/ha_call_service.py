"""The tool `ha_call_service`: have it do something. Most services ask the user."""

from ...core.builtin import registry, text
from ...types import Resources
from . import tool

_DOMAIN = "^[a-z0-9_]+$"

registry.register(
    **tool(
        "ha_call_service",
        "Have Home Assistant do something: light.turn_on, climate.set_temperature... The user is asked before anything "
        "that unlocks, opens, disarms or runs code.",
        ("domain", "service"),
        domain=text("Such as light.", pattern=_DOMAIN),
        service=text("Such as turn_on.", pattern=_DOMAIN),
        entity_id=text("What to do it to; several with commas between."),
        data={"type": "object", "description": 'What else it takes, such as {"brightness_pct": 40}.'},
    ),
    resources=lambda _: Resources(writes=("home assistant",)),  # one after the other, in the model's order
    actions="handrail.tools.home_assistant.calls:actions",
    example={
        "domain": "persistent_notification",
        "service": "create",
        "data": {"title": "Door", "message": "It is locked."},
    },
)
