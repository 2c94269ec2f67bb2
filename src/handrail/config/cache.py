"""Small things worth remembering until the next start. Losing them costs time, nothing else: no failure is an error."""

from __future__ import annotations

import contextlib
import json
import os
from typing import Any

from .paths import cache_dir


def remembered(name: str, *, home: str = "") -> dict[str, Any]:
    try:
        known = json.loads((cache_dir(home) / name).read_bytes())
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def remember(name: str, known: dict[str, Any], *, home: str = "") -> None:
    path = cache_dir(home) / name
    temporary = path.with_name(f"{name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(json.dumps(known))
        temporary.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink()
