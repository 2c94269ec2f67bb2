"""Fill in a form in a real browser. The page is served here, and the guard is told to let the browser reach it."""

from __future__ import annotations

import json
import os
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from handrail import model_tools

FORM = "<form action=/greet><label>Your name <input name=name></label><button>Greet me</button></form>"


class Site(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        name = self.path.partition("name=")[2]
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write((f"<h1>Hello {name}</h1>" if name else FORM).encode())

    def log_message(self, *args: object) -> None:
        pass


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return json.loads(model_tools.handle_function_call(tool, arguments, task_id="t1"))


def ref(snapshot: str, words: str) -> str:
    """What a model sees at a glance: the ref in the line with these words."""
    return re.search(rf"{words}.*\[ref=(\w+)\]", snapshot)[1]


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    os.environ["HANDRAIL_WEB_ALLOW_PRIVATE"] = f"[127.0.0.1:{server.server_port}]"

    page = call("browser_navigate", url=f"http://127.0.0.1:{server.server_port}/")
    print(page["snapshot"])
    call("browser_type", ref=ref(page["snapshot"], "textbox"), text="Ada")
    print(call("browser_click", ref=ref(page["snapshot"], "button"))["snapshot"])

    model_tools.reset()  # closes the browser
    server.shutdown()
    server.server_close()
