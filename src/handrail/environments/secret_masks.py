"""Hide known secret values in what commands print: the runtime's own, and those that commands were given."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from .clean_env import is_secret_name

MASK = "[secret]"
_SHORTEST = 8
# A shorter one, without a digit, or with a space may be an ordinary word: `SECRET_BACKEND=production`.
_RANDOM = re.compile(r"(?=\S*\d)(?=\S*[A-Za-z])\S{12,}")
_CERTAIN_NAME = re.compile(r"(?i)(?:(?:^|_|api)key|token|secret|passw(?:or)?d|passphrase|credential)s?$")


def secret_values(variables: Mapping[str, str]) -> set[str]:
    """The secret values among these variables. A value of several lines counts as each of its lines."""
    found = set()
    for name, value in variables.items():
        if len(value) < _SHORTEST or not is_secret_name(name):
            continue
        for line in value.splitlines():
            if len(line) >= _SHORTEST and (_RANDOM.fullmatch(line) or _CERTAIN_NAME.search(name)):
                found.add(line)
    return found


class Masker:
    """Replaces each of the values by `[secret]`. Costs one search per value."""

    def __init__(self, values: Iterable[str]) -> None:
        # The longest first: one may be a part of another.
        self._values = sorted(values, key=lambda value: (-len(value), value))
        self.longest = len(self._values[0]) if self._values else 0

    def __call__(self, text: str) -> str:
        for value in self._values:
            if value in text:
                text = text.replace(value, MASK)
        return text


class MaskedStream:
    """The same for a text in pieces: as much is held back as could be the start of a value."""

    def __init__(self, masker: Masker) -> None:
        self._masker = masker
        self._held = ""

    def feed(self, text: str) -> str:
        if self._masker.longest == 0:
            return text
        text = self._masker(self._held + text)
        keep = len(text) - (self._masker.longest - 1)
        if keep <= 0:
            self._held = text
            return ""
        self._held = text[keep:]
        return text[:keep]

    def finish(self) -> str:
        held, self._held = self._held, ""
        return held
