"""Read pages of the web. So that it runs anywhere, the page is served here, and the guard is told to let us reach it."""

from __future__ import annotations

import json
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from handrail.model_tools import handle_function_call


class Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = b"<title>Stairs</title><article><h1>Stairs</h1><p>A handrail is held while climbing them.</p></article>"
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()

    # As `web.allow_private` in config.yaml would say. Without it this machine is out of reach.
    os.environ["HANDRAIL_WEB_ALLOW_PRIVATE"] = f"[127.0.0.1:{server.server_port}]"

    urls = [f"http://127.0.0.1:{server.server_port}/", "http://169.254.169.254/latest/meta-data/"]
    for page in json.loads(handle_function_call("web_extract", {"urls": urls}))["results"]:
        print(page["url"], "->", page.get("content") or page["error"])
    server.shutdown()
    server.server_close()
