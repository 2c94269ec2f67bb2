"""Which services of Home Assistant may be called without asking. What is not known to be harmless asks.

The user is asked about what unlocks, opens or disarms, what runs code or automations, what restarts, updates or
changes Home Assistant itself, and every service of a third-party integration.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from ...protocols import Action, ActionKind
from ...types import JsonDict

# Domains whose services only switch, set, show or say something.
_DOMAINS = frozenset(
    (
        "light switch fan climate humidifier water_heater media_player vacuum lawn_mower remote siren notify tts "
        "input_boolean input_number input_select input_text input_datetime input_button number select text date time datetime "
        "timer counter todo shopping_list calendar weather logbook persistent_notification"
    ).split()
)
_SERVICES = frozenset(
    (
        "lock.lock cover.close_cover cover.stop_cover cover.open_cover_tilt cover.close_cover_tilt cover.stop_cover_tilt "
        "cover.set_cover_tilt_position cover.toggle_cover_tilt valve.close_valve valve.stop_valve "
        "alarm_control_panel.alarm_arm_home alarm_control_panel.alarm_arm_away alarm_control_panel.alarm_arm_night "
        "alarm_control_panel.alarm_arm_vacation homeassistant.update_entity"
    ).split()
)
# These act on an entity as the service of its own domain would.
_FOR_ANY_DOMAIN = frozenset({"homeassistant.turn_on", "homeassistant.turn_off", "homeassistant.toggle"})
_WHY = {
    "lock": "it can unlock or open a door",
    "cover": "it can open a door, a gate or a window",
    "valve": "it can open a valve",
    "alarm_control_panel": "it can disarm or set off an alarm",
    "scene": "it sets all that the scene holds, which may be an open lock",
    "button": "it can do anything that a device does",
    "script": "it runs a script, which can do anything",
    "automation": "it changes or runs an automation, which can do anything",
    "homeassistant": "it can stop, restart or change Home Assistant, or switch what is not known to be harmless",
    "update": "it installs software",
    **dict.fromkeys(("hassio", "backup", "recorder"), "it changes Home Assistant itself"),
    **dict.fromkeys(("shell_command", "python_script", "pyscript", "command_line"), "it runs code on that machine"),
    "rest_command": "it sends a request to another server",
    "conversation": "it has Home Assistant do what a sentence says",
}


def question(service: str, data: Mapping[str, object]) -> Action | None:
    """The question for the gate about a call of `service` (`domain.name`); None for a harmless one."""
    entities = entities_of(data)
    if _is_harmless(service, entities, data):
        return None
    domain = service.partition(".")[0]
    why = _WHY.get(domain, "it is not known to be harmless")
    details: JsonDict = {"why": f"{service} in Home Assistant: {why}"}
    others = {name: value for name, value in data.items() if name != "entity_id"}
    if entities and not others:  # a lasting approval covers these entities, and no other data
        details["rule"] = ".".join(["home", service, *sorted(entities)])
    text = f"{service} on {', '.join(entities)}" if entities else service
    if others:
        text += f"\n{json.dumps(others, ensure_ascii=False)}"
    return Action(ActionKind.TOOL, text, environment="Home Assistant", details=details)


def entities_of(data: Mapping[str, object]) -> list[str]:
    """The entities that a call names, whether as a list or with commas between them."""
    named = data.get("entity_id")
    parts = named if isinstance(named, list) else str(named or "").split(",")
    return [str(part).strip() for part in parts if str(part).strip()]


def _is_harmless(service: str, entities: list[str], data: Mapping[str, object]) -> bool:
    if service in _FOR_ANY_DOMAIN:
        known = all(entity.partition(".")[0] in _DOMAINS for entity in entities)
        return bool(entities) and known and data.keys() == {"entity_id"}
    return service in _SERVICES or service.partition(".")[0] in _DOMAINS
