"""Which services ask first."""

from __future__ import annotations

import pytest

from handrail.tools.home_assistant.calls import question


@pytest.mark.parametrize(
    ("service", "data"),
    [
        ("light.turn_on", {"entity_id": ["light.kitchen"], "brightness_pct": 40}),
        ("light.turn_off", {"area_id": "kitchen"}),
        ("climate.set_temperature", {"entity_id": ["climate.hall"], "temperature": 21}),
        ("lock.lock", {"entity_id": ["lock.front_door"]}),
        ("cover.close_cover", {"entity_id": ["cover.garage"]}),
        ("alarm_control_panel.alarm_arm_away", {"entity_id": ["alarm_control_panel.home"]}),
        ("homeassistant.turn_on", {"entity_id": ["light.a", "switch.b"]}),
        ("homeassistant.update_entity", {"entity_id": ["sensor.x"]}),
    ],
)
def test_what_only_switches_or_closes_does_not_ask(service: str, data: dict[str, object]) -> None:
    assert question(service, data) is None


@pytest.mark.parametrize(
    ("service", "data"),
    [
        ("lock.unlock", {"entity_id": ["lock.front_door"]}),
        ("lock.open", {"entity_id": ["lock.front_door"]}),
        ("cover.open_cover", {"entity_id": ["cover.garage"]}),
        ("cover.toggle", {"entity_id": ["cover.garage"]}),
        ("cover.set_cover_position", {"entity_id": ["cover.garage"], "position": 100}),
        ("valve.open_valve", {"entity_id": ["valve.water"]}),
        ("alarm_control_panel.alarm_disarm", {"entity_id": ["alarm_control_panel.home"], "code": "1234"}),
        ("shell_command.anything", {}),
        ("python_script.anything", {}),
        ("rest_command.anything", {}),
        ("script.turn_on", {"entity_id": ["script.x"]}),
        ("automation.trigger", {"entity_id": ["automation.x"]}),
        ("button.press", {"entity_id": ["button.open_gate"]}),
        ("homeassistant.restart", {}),
        ("homeassistant.stop", {}),
        ("hassio.host_reboot", {}),
        ("update.install", {"entity_id": ["update.core"]}),
        ("mqtt.publish", {"topic": "door", "payload": "open"}),
        ("conversation.process", {"text": "unlock the door"}),
        ("scene.turn_on", {"entity_id": ["scene.evening"]}),
        ("homeassistant.turn_on", {"entity_id": ["scene.evening"]}),
        ("scene.apply", {"entities": {"lock.front_door": "unlocked"}}),
        ("homeassistant.turn_on", {"entity_id": ["light.a", "cover.garage"]}),
        ("homeassistant.turn_on", {"entity_id": ["group.everything"]}),
        ("homeassistant.turn_off", {"entity_id": ["all"]}),
        ("homeassistant.toggle", {"entity_id": ["light.a"], "area_id": "hall"}),
        ("homeassistant.turn_on", {}),
        ("somebodys_integration.anything", {}),
    ],
)
def test_what_opens_runs_code_or_is_not_known_asks(service: str, data: dict[str, object]) -> None:
    asked = question(service, data)
    assert asked is not None
    assert service in asked.text
    assert asked.details["why"]


def test_a_lasting_yes_is_for_these_entities_and_no_data() -> None:
    asked = question("lock.unlock", {"entity_id": ["lock.front_door"]})
    assert asked is not None
    assert asked.details["rule"] == "home.lock.unlock.lock.front_door"
    for data in ({"entity_id": ["lock.front_door"], "code": "1"}, {}, {"area_id": "hall"}):
        other = question("lock.unlock", data)
        assert other is not None
        assert "rule" not in other.details
