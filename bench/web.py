"""Figures of the web tools: many pages at once, and what the browser tools add to Playwright."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection

from handrail.core.builtin import builtin_tools
from handrail.core.registry import registry
from handrail.environments.tasks import TaskEnvironments
from handrail.runtime.dispatch import Runtime
from handrail.settings.schema import Config
from handrail.settings.services import WebConfig

from .harness import Figure, alternating, milliseconds

_PAGES = 20
_SLOWEST_SECONDS = 1.0
_ARTICLE = "<title>Article</title><nav><a href=/>Home</a></nav><article><h1>Stairs</h1>" + "".join(
    f"<h2>Part {n}</h2><p>{'A handrail is held while climbing stairs. ' * 12}<a href=/{n}>more</a></p>"
    for n in range(40)
)


def figures() -> Iterator[Figure]:
    builtin_tools()
    config = Config(web=WebConfig(allow_private=("127.0.0.1",)))
    with _site() as url, TaskEnvironments(config) as environments:
        runtime = Runtime(registry, config=config, environments=environments)
        yield many_pages(runtime, url)
        yield from a_page_in_the_browser(runtime, url)


def many_pages(runtime: Runtime, url: str) -> Figure:
    """The server takes its time for each; the slowest alone is the floor."""

    def read(*numbers: int) -> float:
        urls = [f"{url}/{_SLOWEST_SECONDS * (number + 1) / _PAGES}" for number in numbers]
        start = time.perf_counter()
        answer = runtime.handle("web_extract", {"urls": urls, "max_chars": 1000})
        elapsed = time.perf_counter() - start
        assert isinstance(answer, str)
        assert answer.count("handrail") >= len(urls), answer[:1000]
        return elapsed

    mine, base, ratio = alternating(lambda: read(*range(_PAGES)), lambda: read(_PAGES - 1), rounds=3)
    return Figure(f"{_PAGES} pages, of the slowest alone", milliseconds(mine), milliseconds(base), ratio, 1.5)


def a_page_in_the_browser(runtime: Runtime, url: str) -> Iterator[Figure]:
    from playwright.async_api import async_playwright

    loop = asyncio.new_event_loop()
    playwright = loop.run_until_complete(async_playwright().start())
    options = {"executable_path": "/usr/bin/chromium", "chromium_sandbox": False, "args": ["--disable-gpu"]}
    browser = loop.run_until_complete(playwright.chromium.launch(**options))  # type: ignore[arg-type]
    page = loop.run_until_complete(browser.new_page())

    async def alone() -> None:
        await page.goto(f"{url}/0")
        assert "handrail" in await page.aria_snapshot(mode="ai")

    def floor() -> float:
        start = time.perf_counter()
        loop.run_until_complete(alone())
        return time.perf_counter() - start

    def ours() -> float:
        start = time.perf_counter()
        answer = runtime.handle("browser_navigate", {"url": f"{url}/0"})
        elapsed = time.perf_counter() - start
        assert isinstance(answer, str)
        assert "Part 39" in answer, answer[:1000]
        return elapsed

    try:
        mine, base, ratio = alternating(ours, floor, rounds=15)
        yield Figure("navigate and snapshot, of Playwright alone", milliseconds(mine), milliseconds(base), ratio, 1.3)
    finally:
        loop.run_until_complete(browser.close())
        loop.run_until_complete(playwright.stop())
        loop.close()


@contextmanager
def _site() -> Iterator[str]:
    """A server in a process of its own: `/0.5` is a page that takes half a second."""
    near, far = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(far,), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{near.recv()}"
    finally:
        process.kill()
        process.join()


def _serve(told: Connection) -> None:
    server = _Server(("127.0.0.1", 0), _Pages)
    told.send(server.server_port)
    server.serve_forever()


class _Server(ThreadingHTTPServer):
    # With the usual 5, of twenty at once some have to knock again a second later.
    request_queue_size = 128


class _Pages(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        with contextlib.suppress(ValueError):  # the browser asks for an icon, too
            time.sleep(float(self.path.strip("/")))
        body = _ARTICLE.encode()
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass
