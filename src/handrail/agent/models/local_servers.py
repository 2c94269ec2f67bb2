"""Servers for local models that run on this machine, on their default ports."""

from __future__ import annotations

import json
import socket
from typing import NamedTuple

# Their default ports.
DEFAULT_PORTS = {11434: "Ollama", 1234: "LM Studio", 8080: "llama.cpp", 8000: "vLLM"}
_CONNECT_SECONDS = 0.2
_ANSWER_SECONDS = 2.0
_MAX_BYTES = 1_000_000


class LocalServer(NamedTuple):
    """`what` is a guess from the port."""

    what: str
    base_url: str
    models: tuple[str, ...]


def local_servers() -> list[LocalServer]:
    """Those that list their models. Anything else that answers on such a port is ignored."""
    found = ((what, port, _models(port)) for port, what in DEFAULT_PORTS.items())
    return [LocalServer(what, f"http://127.0.0.1:{port}/v1", models) for what, port, models in found if models]


def _models(port: int) -> tuple[str, ...]:
    with socket.socket() as probe:  # most ports are closed, and a client for HTTP is slow to load
        probe.settimeout(_CONNECT_SECONDS)
        if probe.connect_ex(("127.0.0.1", port)) != 0:
            return ()
    import http.client

    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_ANSWER_SECONDS)
    try:
        connection.request("GET", "/v1/models")
        answer = connection.getresponse()
        listed = json.loads(answer.read(_MAX_BYTES))["data"] if answer.status == 200 else []
        return tuple(str(each["id"]) for each in listed)
    except (OSError, http.client.HTTPException, ValueError, LookupError, TypeError):
        return ()
    finally:
        connection.close()
