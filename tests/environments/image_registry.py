"""A registry with one image, for an engine to load it from: no other can be reached."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from ..services import image

_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"


_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}


@contextlib.contextmanager
def serve_image() -> Iterator[str]:
    """Where it is, as `host:port`: every name and tag there is a small image."""
    written = io.BytesIO()
    image.write(written, is_small=True)
    layer = written.getvalue()
    root = {"type": "layers", "diff_ids": [_digest(layer)]}
    config = json.dumps({"architecture": _MACHINES[os.uname().machine], "os": "linux", "rootfs": root}).encode()
    manifest = json.dumps(
        {
            "schemaVersion": 2,
            "mediaType": _MANIFEST,
            "config": _described(config, "application/vnd.docker.container.image.v1+json"),
            "layers": [_described(layer, "application/vnd.docker.image.rootfs.diff.tar.gzip")],
        }
    ).encode()
    blobs = {_digest(blob): blob for blob in (config, layer, manifest)}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            _, kind, name = ("", "", *self.path.strip("/").split("/"))[-3:]
            content = blobs.get(name, manifest) if kind in ("blobs", "manifests") else b"{}"
            self.send_response(200)
            self.send_header("Content-Type", _MANIFEST if kind == "manifests" else "application/octet-stream")
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Docker-Content-Digest", _digest(content))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(content)

        do_HEAD = do_GET  # noqa: N815  the name that is called

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def _described(blob: bytes, kind: str) -> dict[str, object]:
    return {"mediaType": kind, "size": len(blob), "digest": _digest(blob)}


def _digest(blob: bytes) -> str:
    return "sha256:" + hashlib.sha256(blob).hexdigest()
