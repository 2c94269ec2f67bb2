"""Values by name in a file that several processes may change: trusted definitions, logins, what plugins keep."""

import json
from pathlib import Path
from typing import Any

from ..base.own_process import refuse_agents
from ..errors import ConfigError
from .paths import locked, read_text, write_text


class JsonFile:
    """Only its owner can read it. Changing it raises Denied in a process that an agent's tool started."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> dict[str, Any]:
        """Raises ConfigError for a damaged file, which stays as it is."""
        try:
            values = json.loads(read_text(self.path) or "{}")
        except ValueError as error:
            raise ConfigError(f"is damaged ({error}); remove it", path=str(self.path)) from None
        return values if isinstance(values, dict) else {}

    def get(self, key: str, default: Any = None) -> Any:
        return self.read().get(key, default)

    def set(self, key: str, value: Any) -> None:
        self.update({key: value})

    def delete(self, key: str) -> None:
        self.update({}, without=key)

    def update(self, more: dict[str, Any], *, without: str | None = None) -> None:
        with locked(self.path) as target:
            values = {name: value for name, value in self.read().items() if name != without}
            write_text(target, json.dumps({**values, **more}, indent=0) + "\n")
            target.chmod(0o600)

    def forget(self) -> bool:
        """Remove it. Whether there was one."""
        refuse_agents(f"remove {self.path.name}")
        there = self.path.exists()
        for path in (self.path, self.path.with_name(f"{self.path.name}.lock")):
            path.unlink(missing_ok=True)
        return there
