"""Switch a lamp and be asked about a door. The house is played by this program, so that it runs anywhere."""

import json
import os
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

STATES = {"light.kitchen": "off", "lock.front_door": "locked"}
SERVICES = {"light": {"turn_on": {}}, "lock": {"unlock": {}}}


class House(BaseHTTPRequestHandler):
    """Answers as Home Assistant's REST API does."""

    def do_GET(self):
        entity = self.path.removeprefix("/api/states/")
        if entity in STATES:
            self.answer({"entity_id": entity, "state": STATES[entity], "attributes": {}})
        else:
            self.answer([{"domain": domain, "services": services} for domain, services in SERVICES.items()])

    def do_POST(self):
        (entity,) = json.loads(self.rfile.read(int(self.headers["content-length"])))["entity_id"]
        STATES[entity] = "on"
        self.answer([{"entity_id": entity, "state": "on"}])

    def answer(self, value):
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


with tempfile.TemporaryDirectory() as home, HTTPServer(("127.0.0.1", 0), House) as house:
    threading.Thread(target=house.serve_forever, daemon=True).start()
    os.environ["HANDRAIL_HOME"] = home  # so that your own configuration is left alone
    os.environ["HASS_URL"] = f"http://127.0.0.1:{house.server_port}"
    os.environ["HASS_TOKEN"] = "a long-lived access token"

    from handrail.model_tools import handle_function_call

    lamp = {"domain": "light", "service": "turn_on", "entity_id": "light.kitchen"}
    door = {"domain": "lock", "service": "unlock", "entity_id": "lock.front_door"}
    print(handle_function_call("ha_call_service", lamp))
    print(handle_function_call("ha_call_service", door))  # nobody is there to say yes
    print("the door is", STATES["lock.front_door"])
    house.shutdown()
