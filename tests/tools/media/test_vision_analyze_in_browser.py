"""`browser_vision`: what a page in the real browser looks like, by a model or by the one that asks."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from handrail.config.config_file import ConfigFile
from handrail.core.registry import registry
from handrail.model_tools import reset
from handrail.settings.schema import Config
from handrail.tools.browser.tool import check
from handrail.types import Unavailable
from tests.services.components import absent
from tests.support import error_in

from .conftest import Configure, call
from .provider import Provider

PAGE = b"<title>Red</title><body style='margin:0;background:#f00;height:3000px'>"


@pytest.fixture
def page() -> Iterator[str]:
    lack = check(Config())
    if isinstance(lack, Unavailable):
        absent(lack.reason, lack.fix)

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            """Tests print nothing."""

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.send_header("content-length", str(len(PAGE)))
            self.end_headers()
            self.wfile.write(PAGE)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()
    server.server_close()
    thread.join()


def test_the_page_that_is_open_is_looked_at(page: str, media: Configure, provider: Provider) -> None:
    media(vision_model="lab:eyes")
    ConfigFile().set("web.allow_private", ["127.0.0.1"])
    reset()
    provider.says["eyes"] = "all red"
    assert "error" not in json.loads(call("browser_navigate", url=page))
    answer = json.loads(call("browser_vision", question="Which colour?"))
    assert (answer["answer"], answer["url"], answer["title"]) == ("all red", page, "Red")
    json.loads(call("browser_vision", question="And all of it?", full_page=True))
    seen, whole = provider.images
    assert seen.convert("RGB").getpixel((5, 5)) == (255, 0, 0)
    assert whole.height / whole.width > seen.height / seen.width


def test_without_a_page_it_says_so(page: str, media: Configure) -> None:
    media()
    registry.availability.forget()
    assert "page" in error_in(call("browser_vision", question="What?"))["error"]
