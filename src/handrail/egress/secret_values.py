"""The values of configured secrets: read when they are first needed, and kept in this process's memory alone."""

from __future__ import annotations

import os
import re
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path

from ..config.keys import keyring_value
from ..errors import ToolFailed
from ..settings.network import SecretConfig
from .secret_sources import source_of

_COMMAND_SECONDS = 30
# A shorter one would be found in texts that have nothing to do with it.
MIN_CHARS = 8


class SecretValues:
    """By the secret's name. Thread-safe."""

    def __init__(self, secrets: Mapping[str, SecretConfig]) -> None:
        self._secrets = secrets
        self._lock = threading.Lock()
        self._known: dict[str, str] = {}

    def get(self, name: str) -> str:
        """Raises ToolFailed, with a message that has nothing of the value."""
        with self._lock:
            if name not in self._known:
                self._known[name] = _checked(name, _read(name, self._secrets[name].source))
            return self._known[name]

    def known(self) -> list[str]:
        """Those that were read so far, to be masked."""
        return list(self._known.values())


def _read(name: str, source: str) -> str:
    kind, place = source_of(name, source)
    if kind == "environment":
        return os.environ.get(place, "")
    if kind == "keyring":
        return keyring_value(place)
    try:
        if kind == "file":
            return Path(place).expanduser().read_text()
        # Its output goes nowhere else, and neither does what it says when it fails.
        found = subprocess.run(
            ["/bin/sh", "-c", place],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_COMMAND_SECONDS,
            check=True,
        )
        return found.stdout.decode()
    except (OSError, subprocess.SubprocessError, UnicodeError) as error:
        raise ToolFailed(f"the secret {name} cannot be read from its {kind}: {type(error).__name__}") from None


def _checked(name: str, value: str) -> str:
    value = value.strip()
    if not value:
        raise ToolFailed(f"the secret {name} is empty; tell the user (secrets.{name}.source)")
    if len(value) < MIN_CHARS or not re.fullmatch(r"[\x20-\x7e]+", value):
        raise ToolFailed(f"the secret {name} must be {MIN_CHARS} or more printable ASCII characters; tell the user")
    return value
