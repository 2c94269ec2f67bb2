"""Which environment variables, by their names, hold a secret that must not leave the machine."""

from __future__ import annotations

import functools

from ..values.data_files import Patterns
from ..values.word_values import NO_TAINTS, Taint, Taints

_RE = Patterns(__file__)
_PRIVATE: Taints = frozenset((Taint.PRIVATE,))


@functools.lru_cache(256)
def secret_taints(name: str) -> Taints:
    return _PRIVATE if _RE.secret.search(name) and not _RE.about.search(name) else NO_TAINTS
