"""`ha_*` on a real Home Assistant, and on what is none."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from handrail import model_tools
from handrail.config.config_file import ConfigFile
from handrail.model_tools import default, get_tool_definitions, handle_function_call
from handrail.protocols import Decision
from handrail.testing import RecordingApprover
from tests.services.homeassistant import HomeAssistant
from tests.support import PATIENCE_SECONDS, error_in, free_port, wait_until

DOOR = {"domain": "lock", "service": "unlock", "entity_id": "lock.front_door"}


@pytest.fixture
def hass(home_service: HomeAssistant, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HomeAssistant]:
    monkeypatch.setenv("HASS_URL", home_service.url)
    monkeypatch.setenv("HASS_TOKEN", home_service.token)
    model_tools.default().registry.availability.forget()
    yield home_service
    model_tools.default().registry.availability.forget()


def _call(tool: str, /, **arguments: Any) -> Any:
    return json.loads(handle_function_call(tool, arguments))  # type: ignore[arg-type]


def _fails(tool: str, /, **arguments: Any) -> dict[str, Any]:
    return error_in(handle_function_call(tool, arguments))


def test_entities_are_found_by_kind_words_and_room(hass: HomeAssistant) -> None:
    everything = _call("ha_list_entities")
    assert everything["total"] == len(everything["entities"])
    (lock,) = _call("ha_list_entities", domain="lock")["entities"]
    assert (lock["entity_id"], lock["name"], lock["state"]) == ("lock.front_door", "Front Door", "locked")
    (number,) = _call("ha_list_entities", query="TARGET")["entities"]
    assert number == {"entity_id": "input_number.target", "state": "20.0", "unit": "°C", "name": "Target"}
    assert [each["name"] for each in _call("ha_list_entities", area="Pantry")["entities"]] == ["Kettle"]
    nothing = _call("ha_list_entities", area="No such room")
    assert (nothing["entities"], nothing["total"]) == ([], 0)
    assert nothing["hint"]


def test_one_state_is_shown_whole_and_an_unknown_one_gets_a_suggestion(hass: HomeAssistant) -> None:
    state = _call("ha_get_state", entity_id="input_number.target")
    assert state["state"] == "20.0"
    assert state["attributes"]["max"] == 30
    assert "did you mean lock.front_door?" in _fails("ha_get_state", entity_id="lock.frontdoor")["error"]
    assert _fails("ha_get_state", entity_id="../config")["error_type"] == "invalid_arguments"


def test_services_are_listed_short_and_of_a_domain_whole(hass: HomeAssistant) -> None:
    services = _call("ha_list_services")["services"]
    assert {"turn_on", "turn_off", "toggle"} <= set(services["input_boolean"])
    number = _call("ha_list_services", domain="input_number")["services"]
    assert "value" in number["input_number.set_value"]["takes"]
    assert _fails("ha_list_services", domain="input_nummer")["did_you_mean"] == "input_number"


def test_what_is_harmless_is_done_without_asking(hass: HomeAssistant) -> None:
    approver = default().runtime.approver = RecordingApprover()
    done = _call("ha_call_service", domain="input_boolean", service="turn_on", entity_id="input_boolean.kettle")
    assert {"entity_id": "input_boolean.kettle", "state": "on"} in done["changed"]
    assert hass.state("input_boolean.kettle") == "on"
    value = {"entity_id": "input_number.target", "data": {"value": 22}}
    _call("ha_call_service", domain="input_number", service="set_value", **value)
    assert hass.state("input_number.target") == "22.0"
    _call("ha_call_service", domain="input_boolean", service="turn_off", entity_id="input_boolean.kettle")
    _call("ha_call_service", domain="input_number", service="set_value", **{**value, "data": {"value": 20}})
    assert approver.requests == []


def test_a_door_is_unlocked_only_by_a_yes(hass: HomeAssistant) -> None:
    assert _fails("ha_call_service", **DOOR)["error_type"] == "denied"
    approver = default().runtime.approver = RecordingApprover([Decision.DENY, Decision.SESSION])
    assert _fails("ha_call_service", **DOOR)["error_type"] == "denied"
    assert hass.state("lock.front_door") == "locked"
    _call("ha_call_service", **DOOR)
    wait_until(lambda: hass.state("lock.front_door") == "unlocked")
    _call("ha_call_service", domain="lock", service="lock", entity_id="lock.front_door")
    wait_until(lambda: hass.state("lock.front_door") == "locked")
    _call("ha_call_service", **DOOR)  # the yes was for the session
    _call("ha_call_service", domain="lock", service="lock", entity_id="lock.front_door")
    wait_until(lambda: hass.state("lock.front_door") == "locked")
    first, second = approver.requests
    assert "lock.unlock on lock.front_door" in first.text
    assert "unlock" in second.reason


def test_code_runs_only_by_a_yes_and_every_time_anew(hass: HomeAssistant) -> None:
    touch = {"domain": "shell_command", "service": "touch"}
    assert _fails("ha_call_service", **touch)["error_type"] == "denied"
    assert not hass.touched.exists()
    approver = default().runtime.approver = RecordingApprover([Decision.ONCE])
    _call("ha_call_service", **touch)
    wait_until(hass.touched.exists)
    hass.touched.unlink()
    assert Decision.SESSION not in approver.requests[0].offers
    assert "runs code" in approver.requests[0].reason


def test_a_service_that_may_answer_is_called(hass: HomeAssistant) -> None:
    default().runtime.approver = RecordingApprover([Decision.ONCE])
    done = _call("ha_call_service", domain="script", service="greet")
    assert done["called"] == "script.greet"
    assert "script.greet" in [each["entity_id"] for each in done["changed"]]


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ({"domain": "input_boolean", "service": "turn_onn"}, "input_boolean has: "),
        ({"domain": "vacuum", "service": "start"}, "domains: "),
        (
            {"domain": "input_boolean", "service": "turn_on", "entity_id": "input_boolean.ketle"},
            "input_boolean.kettle?",
        ),
        ({"domain": "input_boolean", "service": "turn_on", "entity_id": "the kettle"}, "not an entity id"),
        (
            {
                "domain": "input_boolean",
                "service": "turn_on",
                "entity_id": "input_boolean.kettle",
                "data": {"entity_id": "input_boolean.gate"},
            },
            "not both",
        ),
        (
            {
                "domain": "input_number",
                "service": "set_value",
                "entity_id": "input_number.target",
                "data": {"value": "warm"},
            },
            "may not take these arguments",
        ),
        ({"domain": "../../auth", "service": "x"}, "domain"),
    ],
)
def test_what_cannot_be_done_says_why(hass: HomeAssistant, arguments: dict[str, Any], what: str) -> None:
    assert what in _fails("ha_call_service", **arguments)["error"]


def test_a_wrong_token_is_said_and_not_shown(hass: HomeAssistant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", "wrong-token-1234")
    ConfigFile().set("homeassistant.key_variable", "MY_TOKEN")
    model_tools.reset()
    error = _fails("ha_list_entities")
    assert "does not accept the token" in error["error"]
    assert "wrong-token" not in str(error)


def test_without_a_token_it_is_not_offered_and_says_what_it_needs(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HASS_TOKEN", raising=False)
    model_tools.default().registry.availability.forget()
    listed = {each["function"]["name"] for each in get_tool_definitions(quiet_mode=True)}
    assert not {name for name in listed if name.startswith("ha_")}
    error = _fails("ha_get_state", entity_id="light.x")
    assert error["error_type"] == "unavailable"
    assert "HASS_TOKEN is not set" in error["error"]
    assert "long-lived access token" in error["fix"]


@pytest.fixture
def elsewhere(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A token for a server that is none."""
    monkeypatch.setenv("HASS_TOKEN", "some-token-12345")
    model_tools.default().registry.availability.forget()
    yield
    model_tools.default().registry.availability.forget()


def test_a_dead_server_is_said(elsewhere: None) -> None:
    ConfigFile().set("homeassistant.url", f"http://127.0.0.1:{free_port()}")
    model_tools.reset()
    assert "Home Assistant cannot be reached" in _fails("ha_list_entities")["error"]


def test_an_address_that_is_none_is_said(elsewhere: None) -> None:
    ConfigFile().set("homeassistant.url", "homeassistant.local")
    model_tools.reset()
    assert "not an http address" in _fails("ha_list_entities")["error"]


@pytest.mark.parametrize(
    ("body", "what"),
    [
        (b"<html>Hello</html>", "does not answer like Home Assistant"),
        (b'{"some": "json"}', "does not answer like Home Assistant"),
        (b"[1, 2]", "does not answer like Home Assistant"),
        (None, "did not answer within"),
    ],
)
def test_another_server_is_told_apart(elsewhere: None, body: bytes | None, what: str) -> None:
    over = threading.Event()

    class Other(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if body is None:
                over.wait(PATIENCE_SECONDS)
                return
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Other) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        ConfigFile().set("homeassistant.url", f"http://127.0.0.1:{server.server_port}")
        ConfigFile().set("homeassistant.timeout", 0.5 if body is None else PATIENCE_SECONDS)
        model_tools.reset()
        try:
            assert what in _fails("ha_list_entities")["error"]
        finally:
            over.set()
            server.shutdown()
            thread.join()
