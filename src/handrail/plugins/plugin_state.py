"""What a plugin keeps from one run to the next."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..config.paths import locked, read_text, write_text
from ..errors import ConfigError
from ..types import JsonDict


class PluginState:
    """JSON values by name, in a file of their own that several processes may write."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def get(self, key: str, default: Any = None) -> Any:
        """Raises ConfigError for a damaged file, which stays as it is."""
        return self._values().get(key, default)

    def set(self, key: str, value: Any) -> None:
        self._change(lambda values: values.update({key: value}))

    def delete(self, key: str) -> None:
        self._change(lambda values: values.pop(key, None))

    def _change(self, change: Callable[[JsonDict], Any]) -> None:
        with locked(self._path) as target:
            values = self._values()
            change(values)
            write_text(target, json.dumps(values, ensure_ascii=False))

    def _values(self) -> JsonDict:
        try:
            values = json.loads(read_text(self._path) or "{}")
        except ValueError as error:
            raise ConfigError(f"is damaged ({error}); correct or remove it", path=str(self._path)) from None
        return values if isinstance(values, dict) else {}
