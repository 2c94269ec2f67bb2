"""Which environment variables, by their names, hold a secret that must not leave the machine."""

from __future__ import annotations

import functools
import re

from ..values.data_files import lazy_pattern
from ..values.word_values import NO_TAINTS, Taint, Taints

_SECRET = lazy_pattern(
    r"SECRET|PASSW(?:OR)?D|PASSPHRASE|PRIVATE_?KEY|CREDENTIAL|ACCESS_KEY|SESSION_TOKEN|"
    r"(?:GITHUB|GH|GITLAB|NPM|PYPI|VAULT|CI_JOB|OPENAI|ANTHROPIC|AWS|AZURE|GOOGLE|DOCKER)_\w*(?:TOKEN|KEY)",
    re.IGNORECASE,
)
# What is about a secret, and not the secret itself.
_ABOUT = lazy_pattern(
    r"_(?:URL|URI|HOST|ADDR|ADDRESS|ENDPOINT|PORT|PATH|FILE|DIR|NAME|ARN|REGION|VERSION|LENGTH)$", re.IGNORECASE
)
_PRIVATE: Taints = frozenset((Taint.PRIVATE,))


@functools.lru_cache(256)
def secret_taints(name: str) -> Taints:
    return _PRIVATE if _SECRET.search(name) and not _ABOUT.search(name) else NO_TAINTS
