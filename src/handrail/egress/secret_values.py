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
from ..settings.services import SecretConfig
from .secret_sources import source_of

_COMMAND_SECONDS = 30


class SecretValues:
    """By the secret's name. Thread-safe."""

    def __init__(self, secrets: Mapping[str, SecretConfig]) -> None:
        self._secrets, self._lock = secrets, threading.Lock()
        self.known: dict[str, str] = {}  # those that were read so far

    def get(self, name: str) -> str:
        """Raises ToolFailed, with a message that has nothing of the value."""
        with self._lock:
            if name not in self.known:
                value = _read(name, self._secrets[name].source).strip()
                # A shorter one would be found in texts that have nothing to do with it.
                if not re.fullmatch(r"[\x20-\x7e]{8,}", value):
                    what = "must be 8 or more printable ASCII characters" if value else "is empty"
                    raise ToolFailed(f"the secret {name} {what}; tell the user (secrets.{name}.source)")
                self.known[name] = value
            return self.known[name]


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
        words, stdin = ["/bin/sh", "-c", place], subprocess.DEVNULL
        found = subprocess.run(words, stdin=stdin, capture_output=True, timeout=_COMMAND_SECONDS, check=True)
        return found.stdout.decode()
    except (OSError, subprocess.SubprocessError, UnicodeError) as error:
        raise ToolFailed(f"the secret {name} cannot be read from its {kind}: {type(error).__name__}") from None
