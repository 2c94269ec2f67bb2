"""A Home Assistant of the tests' own: a lamp, a front door, a garage, and a command that it can run."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .servers import WebServer, ask
from .tenants import Services, Tenant

FOLDER = Path(os.environ.get("HANDRAIL_TEST_HOMEASSISTANT") or Path.home() / ".cache/handrail-tests/homeassistant")
PYTHON = FOLDER / "py/bin/python"
IS_COMPLETE = FOLDER / "py/.complete"
# By its own interpreter, which has a client for websockets: a token that lasts is given only there.
_ONBOARD = """
import asyncio, json, sys, aiohttp

async def main(url):
    async with aiohttp.ClientSession() as session:
        async def post(path, **content):
            async with session.post(url + path, **content) as reply:
                reply.raise_for_status()
                return await reply.json()
        user = {"name": "Ada", "username": "ada", "password": "pw", "client_id": url, "language": "en"}
        code = (await post("/api/onboarding/users", json=user))["auth_code"]
        grant = {"grant_type": "authorization_code", "code": code, "client_id": url}
        token = (await post("/auth/token", data=grant))["access_token"]
        async with session.ws_connect(url.replace("http", "ws") + "/api/websocket") as socket:
            async def ask(**message):
                await socket.send_json(message)
                answer = await socket.receive_json()
                assert answer.get("success", True), (message["type"], answer)
                return answer
            await socket.receive_json()
            await ask(type="auth", access_token=token)
            made = await ask(id=1, type="auth/long_lived_access_token", client_name="tests", lifespan=1)
            area = await ask(id=2, type="config/area_registry/create", name="Pantry")
            await ask(id=3, type="config/entity_registry/update", entity_id="input_boolean.kettle",
                      area_id=area["result"]["area_id"])
            print(json.dumps({"token": made["result"]}))

asyncio.run(main(sys.argv[1]))
"""


@dataclass(frozen=True)
class HomeAssistant:
    """A running one. `state` and `touched` look at it beside what is tested."""

    tenant: Tenant

    @classmethod
    def join(cls, services: Services) -> HomeAssistant:
        return cls(services.join("homeassistant:Hass"))

    @property
    def url(self) -> str:
        return str(self.tenant.facts["url"])

    @property
    def token(self) -> str:
        return str(self.tenant.facts["token"])

    @property
    def touched(self) -> Path:
        """The file that its shell command makes."""
        return Path(self.tenant.facts["touched"])

    def state(self, entity: str) -> str:
        return str(json.loads(ask("GET", f"{self.url}/api/states/{entity}", token=self.token))["state"])


class Hass(WebServer):
    def _configure(self, port: int) -> list[str | Path]:
        # JSON is YAML.
        (self._folder / "configuration.yaml").write_text(json.dumps(_configuration(port, self._touched)))
        return [PYTHON, "-m", "homeassistant", "--config", self._folder, "--skip-pip"]

    def _answers(self, url: str) -> bool:
        return bool(json.loads(ask("GET", f"{url}/api/onboarding")))

    def _facts(self, url: str) -> dict[str, Any]:
        made = subprocess.run([PYTHON, "-c", _ONBOARD, url], capture_output=True, text=True, check=False)
        assert made.returncode == 0, f"{made.stderr}\n{self._said()}"
        return {"touched": str(self._touched), **json.loads(made.stdout)}

    @property
    def _touched(self) -> Path:
        return self._folder / "touched"


def _configuration(port: int, touched: Path) -> dict[str, Any]:
    def switches(name: str, on: str, off: str) -> dict[str, Any]:
        entity = f"input_boolean.{name}"
        return {
            "value_template": f"{{{{ is_state('{entity}', 'on') }}}}",
            on: {"service": "input_boolean.turn_on", "target": {"entity_id": entity}},
            off: {"service": "input_boolean.turn_off", "target": {"entity_id": entity}},
        }

    return {
        "homeassistant": {
            "name": "Home", "latitude": 52.5, "longitude": 13.4, "elevation": 30, "unit_system": "metric",
            "time_zone": "UTC", "country": "DE",
        },
        "http": {"server_host": "127.0.0.1", "server_port": port},
        "api": {},
        "websocket_api": {},
        "config": {},
        "onboarding": {},
        "input_boolean": {
            "bolt": {"name": "Bolt", "initial": True},
            "gate": {"name": "Gate", "initial": False},
            "kettle": {"name": "Kettle", "initial": False},
        },
        "input_number": {"target": {"name": "Target", "min": 5, "max": 30, "initial": 20, "unit_of_measurement": "°C"}},
        "lock": [{"platform": "template", "name": "Front Door", **switches("bolt", "lock", "unlock")}],
        "cover": [
            {"platform": "template",
             "covers": {"garage": {"friendly_name": "Garage", **switches("gate", "open_cover", "close_cover")}}}
        ],
        "shell_command": {"touch": f"touch {touched}"},
        "script": {
            "greet": {
                "sequence": [
                    {"variables": {"said": {"text": "hello"}}},
                    {"stop": "done", "response_variable": "said"},
                ]
            }
        },
    }  # fmt: skip
