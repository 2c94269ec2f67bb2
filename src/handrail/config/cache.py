"""Small things worth remembering until the next start. Losing them costs time, nothing else: no failure is an error.

Only this user can read or write them, whatever the umask: some of it says what is imported at the next start.
"""

from __future__ import annotations

import contextlib
import json
import os
from typing import Any

from .files import make_private
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
        make_private(path.parent)
        path.parent.chmod(0o700)  # one that an earlier version made is as open as the umask then was
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "w") as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(json.dumps(known))
        temporary.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink()
