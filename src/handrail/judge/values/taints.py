"""Where a text came from, as far as a rule may care."""

import enum
import functools
from collections.abc import Iterable
from typing import Protocol

from .data_files import Patterns

_RE = Patterns(__file__)


class Taint(enum.StrEnum):
    NETWORK = "network"
    """It was fetched from another machine."""
    CREDENTIAL = "credential"
    """It holds what a credential file or a secret store holds."""
    PRIVATE = "private"
    """It holds a secret of the environment, the users of the machine, or what is in a database."""
    WIDE = "wide"
    """It lists files or processes that the command did not name (`find`, `ls`, `ps`)."""
    ENDLESS = "endless"
    """It never ends (`yes`)."""
    ENV_SCRIPT = "env-script"
    """It is what a known program prints to be evaluated (`ssh-agent -s`, `brew shellenv`)."""
    OWN = "own"
    """It tells of Handrail's own processes (`pgrep handrail`)."""


Taints = frozenset[Taint]
NO_TAINTS: Taints = frozenset()
NETWORK, CREDENTIAL, PRIVATE, WIDE, ENDLESS, ENV_SCRIPT, OWN = (frozenset((taint,)) for taint in Taint)


class Tainted(Protocol):
    taints: Taints


def taints_of(parts: Iterable[Tainted]) -> Taints:
    """Everything that any of these came from."""
    found: Taints = NO_TAINTS
    for part in parts:
        if part.taints:
            found |= part.taints
    return found


@functools.lru_cache(256)
def secret_taints(name: str) -> Taints:
    """Those of an environment variable that, by its name, holds a secret which must not leave the machine."""
    return PRIVATE if _RE.secret.search(name) and not _RE.about.search(name) else NO_TAINTS
