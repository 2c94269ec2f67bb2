"""A server of the tests' own that is spoken to by HTTP, as its caretaker sees it."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..support import free_port, wait_until

_START_SECONDS = 120.0


class WebServer:
    """One kind of it says which program it is, what to ask to know that it is up, and what else there is to know."""

    orders: frozenset[str] = frozenset()
    env: Mapping[str, str] = {}

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._log = folder / "output.log"

    def start(self) -> dict[str, Any]:
        port = free_port()
        url = f"http://127.0.0.1:{port}"
        command = self._configure(port)
        with open(self._log, "wb") as log:
            process = subprocess.Popen(
                command,
                cwd=self._folder,
                env={**os.environ, **self.env},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        wait_until(lambda: process.poll() is not None or self._is_up(url), timeout=_START_SECONDS, otherwise=self._said)
        assert process.poll() is None, self._said()
        return {"url": url, **self._facts(url)}

    def stop(self) -> None:
        """The caretaker ends what is in the namespace."""

    def _configure(self, port: int) -> Sequence[str | Path]:
        """Write its settings. Gives back the command that starts it."""
        raise NotImplementedError

    def _answers(self, url: str) -> bool:
        """Whether it does what it is for. Raises OSError when nobody is there yet."""
        raise NotImplementedError

    def _facts(self, url: str) -> dict[str, Any]:
        return {}

    def _is_up(self, url: str) -> bool:
        with contextlib.suppress(OSError):
            return self._answers(url)
        return False

    def _said(self) -> str:
        return self._log.read_text(errors="replace")[-4000:]


def ask(method: str, url: str, body: Any = None, *, token: str = "") -> bytes:
    """Past any proxy that the person who runs the tests may have."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"content-type": "application/json", **({"authorization": f"Bearer {token}"} if token else {})}
    request = urllib.request.Request(url, data, headers, method=method)
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as answer:
        return bytes(answer.read())
