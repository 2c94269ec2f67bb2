"""A searx of the tests' own, over an index of a few pages that we wrote."""

from __future__ import annotations

import json
import subprocess
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from .servers import WebServer, ask
from .tenants import Services, Tenant

PAGES = [
    {
        "url": "https://rails.example/handrails",
        "title": "Handrails",
        "text": "A handrail is held while climbing stairs.",
    },
    {"url": "https://rails.example/locks", "title": "Locks", "text": "A lock keeps a door shut."},
    *({"url": f"https://many.example/{n}", "title": f"Stairs {n}", "text": "All about stairs."} for n in range(30)),
]
# By the interpreter that searx itself runs on, which can read its settings.
_SETTINGS = """
import sys, yaml
settings = yaml.safe_load(open("/usr/share/doc/searx/examples/settings.yml"))
settings["search"]["formats"] = ["html", "json"]
settings["server"] |= {"port": int(sys.argv[1]), "bind_address": "127.0.0.1", "secret_key": "of the tests", "method": "GET"}
settings["engines"] = [{
    "name": "ours", "engine": "json_engine", "shortcut": "ours", "categories": "general", "enable_http": True, "timeout": 10.0,
    "search_url": f"http://127.0.0.1:{sys.argv[2]}/?q={{query}}", "results_query": "results", "url_query": "url",
    "title_query": "title", "content_query": "text",
}]
yaml.safe_dump(settings, open(sys.argv[3], "w"))
"""


@dataclass(frozen=True)
class Searx:
    """A running searx: `url`."""

    tenant: Tenant
    url: str

    @classmethod
    def join(cls, services: Services) -> Searx:
        tenant = services.join("searx:SearxServer")
        return cls(tenant, tenant.facts["url"])


class SearxServer(WebServer):
    def _configure(self, port: int) -> list[str | Path]:
        index = ThreadingHTTPServer(("127.0.0.1", 0), _Index)
        threading.Thread(target=index.serve_forever, daemon=True).start()
        settings = str(self._folder / "settings.yml")
        subprocess.run(["/usr/bin/python3", "-c", _SETTINGS, str(port), str(index.server_port), settings], check=True)
        self.env = {"SEARX_SETTINGS_PATH": settings}
        return ["/usr/bin/python3", "/usr/bin/searx-run"]

    def _answers(self, url: str) -> bool:
        return b"rails.example/locks" in ask("GET", f"{url}/search?q=locks&format=json")


class _Index(BaseHTTPRequestHandler):
    """Finds the pages that have every word of the question."""

    def do_GET(self) -> None:
        words = parse_qs(urlsplit(self.path).query).get("q", [""])[0].lower().split()
        found = [page for page in PAGES if all(word in f"{page['title']} {page['text']}".lower() for word in words)]
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps({"results": found}).encode())

    def log_message(self, *_: object) -> None:
        pass
