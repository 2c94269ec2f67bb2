"""A searx of the tests' own, over an index of a few pages that we wrote."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import urllib.request
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from ..support import free_port, wait_until
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


class SearxServer:
    """The server, as its caretaker sees it."""

    orders = frozenset[str]()

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def start(self) -> dict[str, Any]:
        index = ThreadingHTTPServer(("127.0.0.1", 0), _Index)
        threading.Thread(target=index.serve_forever, daemon=True).start()
        port = free_port()
        settings = self._folder / "settings.yml"
        subprocess.run(
            ["/usr/bin/python3", "-c", _SETTINGS, str(port), str(index.server_port), str(settings)], check=True
        )
        with open(self._folder / "searx.log", "wb") as log:
            process = subprocess.Popen(
                ["/usr/bin/python3", "/usr/bin/searx-run"],
                env={**os.environ, "SEARX_SETTINGS_PATH": str(settings)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        url = f"http://127.0.0.1:{port}"
        wait_until(lambda: process.poll() is not None or _answers(url), timeout=60, otherwise=self._log)
        assert process.poll() is None, self._log()
        return {"url": url}

    def stop(self) -> None:
        """The caretaker ends what is in the namespace."""

    def _log(self) -> str:
        return (self._folder / "searx.log").read_text(errors="replace")[-4000:]


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


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/search?q=locks&format=json", timeout=5) as answer:
            return b"rails.example/locks" in answer.read()
    except OSError:
        return False
