"""Pages that the tests serve on loopback, the bad ones among them."""

from __future__ import annotations

import gzip
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Page = Callable[["Handler"], None]

ARTICLE = (
    "<html><head><title>Of handrails &amp; stairs</title></head><body><nav><a href='/a'>Menu</a></nav><article><h1>Handrails</h1>"
    + "".join(
        f"<p>Paragraph {n}: a handrail is a rail that people hold while they go up or down stairs.</p>"
        for n in range(9)
    )
    + "<table><tr><th>part</th><th>height</th></tr><tr><td>rail</td><td>90 cm</td></tr></table>"
    "</article><footer>Imprint</footer></body></html>"
)


class Site:
    """A server with pages by path. `asked` is what was asked for, in order."""

    def __init__(self, address: str = "127.0.0.1", port: int = 0) -> None:
        self.pages: dict[str, Page] = {}
        self.asked: list[str] = []
        self.over = threading.Event()
        self._server = _Server((address, port), Handler)
        self._server.site = self
        self.host, self.port = address, self._server.server_port
        self.url = f"http://{address}:{self.port}"

    def serve(self) -> None:
        self._server.serve_forever(poll_interval=0.02)

    def close(self) -> None:
        self.over.set()
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    site: Site


class Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        self.site.asked.append(self.path)
        page = self.site.pages.get(self.path.partition("?")[0])
        with suppress(ConnectionError, BrokenPipeError):
            if page is None:
                self.answer("no such page", status=404)
            else:
                page(self)

    do_POST = do_GET  # noqa: N815  the name that the library calls

    @property
    def site(self) -> Site:
        return self.server.site

    def answer(
        self, body: str | bytes, kind: str = "text/html; charset=utf-8", *, status: int = 200, **headers: str
    ) -> None:
        data = body.encode() if isinstance(body, str) else body
        self.head(kind, status=status, **headers, content_length=str(len(data)))
        self.wfile.write(data)

    def head(self, kind: str, *, status: int = 200, **headers: str) -> None:
        self.send_response(status)
        if kind:
            self.send_header("content-type", kind)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    def wait(self, seconds: float) -> None:
        """Until then, or until the test is over."""
        self.site.over.wait(seconds)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def site(address: str = "127.0.0.1", port: int = 0) -> Iterator[Site]:
    made = Site(address, port)
    thread = threading.Thread(target=made.serve, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        made.close()
        thread.join()


def html(body: str, **options: str) -> Page:
    return lambda handler: handler.answer(body, **options)


def redirect(to: str) -> Page:
    return lambda handler: handler.answer("", status=302, location=to)


def slow(seconds: float, body: str) -> Page:
    def page(handler: Handler) -> None:
        handler.wait(seconds)
        handler.answer(body)

    return page


def endless(handler: Handler) -> None:
    handler.head("text/plain")
    while not handler.site.over.is_set():
        handler.wfile.write(b"more and more " * 5000)


def dripping(handler: Handler) -> None:
    """A byte now and then: each read succeeds in time, the whole never ends."""
    handler.head("text/plain")
    end = time.monotonic() + 120
    while not handler.site.over.is_set() and time.monotonic() < end:
        handler.wfile.write(b".")
        handler.wfile.flush()
        handler.wait(0.05)


def gzip_bomb(handler: Handler) -> None:
    """Two hundred megabytes in two hundred kilobytes, sent at once."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    piece = b"a" * 1_000_000
    packed = b"".join([*(packer.compress(piece) for _ in range(200)), packer.flush()])
    handler.answer(packed, "text/plain", content_encoding="gzip")


def gzipped(body: str) -> Page:
    return lambda handler: handler.answer(gzip.compress(body.encode()), content_encoding="gzip")


def deflated(body: str, *, raw: bool) -> Page:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15 if raw else 15)
    data = packer.compress(body.encode()) + packer.flush()
    return lambda handler: handler.answer(data, content_encoding="deflate")
