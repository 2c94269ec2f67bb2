"""Where the values of secrets are, as the user writes it."""

import os
from collections.abc import Mapping

from ..errors import ConfigError
from ..settings.services import SecretConfig


def source_of(name: str, text: str) -> tuple[str, str]:
    """The kind of a source, and where in it. Raises ConfigError."""
    kind, _, place = text.partition(":")
    if kind not in ("keyring", "environment", "file", "command") or not place.strip():
        known = "keyring:NAME, environment:NAME, file:PATH, command:..."
        raise ConfigError(f"{text!r} is not a source; write one of {known}", key=f"secrets.{name}.source")
    return kind, place.strip()


def secret_files(secrets: Mapping[str, SecretConfig]) -> list[str]:
    """The files that hold values: no command and no tool may read them."""
    sources = [source_of(name, each.source) for name, each in secrets.items()]
    return [os.path.realpath(os.path.expanduser(place)) for kind, place in sources if kind == "file"]
