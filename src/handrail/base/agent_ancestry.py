"""Was this process started by an agent's tool? Then it may not lift the gate that the agent stands behind.

The shells of the tools carry a marker in their environment. A command can take it out of its own (`env -i`), but not out
of the shell above it, nor can it leave the processes that keep the shells: what loses its parent comes back to them. So
the ancestors are asked too, where the system tells of them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

MARKER = "HANDRAIL_INSIDE"
_KEEPERS = frozenset({"handrail-fork", "handrail-shell", "handrail-job", "handrail-relay"})
_MAX_ANCESTORS = 200


def started_by_agent() -> bool:
    """Whether this process is one that an agent's tool started, as far as can be told."""
    if MARKER in os.environ:
        return True
    return any(name in _KEEPERS or _is_marked(pid) for pid, name in _ancestors())


def _ancestors() -> Iterator[tuple[int, str]]:
    """This process and those above it, by number and name. Nothing where there is no /proc."""
    pid = os.getpid()
    for _ in range(_MAX_ANCESTORS):
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                text = file.read().decode("utf-8", "replace")
        except OSError:
            return
        # The name stands in parentheses and may hold some itself.
        name, rest = text[text.index("(") + 1 : text.rindex(")")], text[text.rindex(")") + 1 :]
        yield pid, name
        pid = int(rest.split()[1])
        if pid <= 0:
            return


def _is_marked(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            variables = file.read().split(b"\0")
    except OSError:  # somebody else's: sudo and init are above most of us
        return False
    return any(variable.startswith(MARKER.encode() + b"=") for variable in variables)
