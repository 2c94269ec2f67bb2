"""Let an agent write to somebody whom you have named: here a webhook, which this program answers itself."""

import json
import os
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path


class Inbox(BaseHTTPRequestHandler):
    """Stands for the service that takes the message."""

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        print("the service got:", message["subject"], "-", message["text"])
        self.send_response(204)
        self.end_headers()

    def log_message(self, *args):
        pass


with tempfile.TemporaryDirectory() as home, HTTPServer(("127.0.0.1", 0), Inbox) as inbox:
    threading.Thread(target=inbox.serve_forever, daemon=True).start()
    os.environ["HANDRAIL_HOME"] = home  # so that your own configuration is left alone

    from handrail.model_tools import get_tool_definitions, handle_function_call

    url = f"http://127.0.0.1:{inbox.server_port}/"
    Path(home, "config.yaml").write_text(f"messages: {{targets: {{team: {{kind: webhook, url: '{url}'}}}}}}\n")

    (definition,) = get_tool_definitions(enabled_toolsets=["messaging"])
    print(definition["function"]["description"])
    print(handle_function_call("send_message", {"target": "team", "subject": "Build", "message": "It is green."}))
    print(handle_function_call("send_message", {"target": "taem", "message": "Hello?"}))
    inbox.shutdown()
