"""Was this process started by an agent's tool? Then it may not lift the agent's gate.

The shells of the tools have a marker in their environment. A command can remove it from its own (`env -i`), but not from the
shell above it, nor can it leave the supervisors of the shells, to which orphans are reparented. So the ancestors are checked
too, where the system shows them.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator

from ..errors import Denied

MARKER = "HANDRAIL_INSIDE"
_KEEPERS = frozenset({"handrail-fork", "handrail-shell", "handrail-job", "handrail-relay"})
_MAX_ANCESTORS = 200


def started_by_agent() -> bool:
    """Whether an agent's tool started this process, as far as can be known."""
    return MARKER in os.environ or _is_below_agent(os.getpid())


@functools.lru_cache(maxsize=2)  # a process never gets an ancestor that was not above it before
def _is_below_agent(_: int) -> bool:
    return any(name in _KEEPERS or _is_marked(pid) for pid, name in _ancestors())


def refuse_agents(what: str) -> None:
    """Raise Denied in a process that an agent's tool started."""
    if started_by_agent():
        raise Denied(f"an agent cannot {what}: this shell was started by one; use a terminal of your own")


def _ancestors() -> Iterator[tuple[int, str]]:
    """The pid and name of this process and its ancestors. Nothing where there is no /proc."""
    pid = os.getpid()
    for _ in range(_MAX_ANCESTORS):
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                text = file.read().decode("utf-8", "replace")
        except OSError:
            return
        # The name is in parentheses and may contain some itself.
        name, rest = text[text.index("(") + 1 : text.rindex(")")], text[text.rindex(")") + 1 :]
        yield pid, name
        pid = int(rest.split()[1])
        if pid <= 0:
            return


def _is_marked(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            variables = file.read().split(b"\0")
    except OSError:  # another user's: sudo and init are above most processes
        return False
    return any(variable.startswith(MARKER.encode() + b"=") for variable in variables)
