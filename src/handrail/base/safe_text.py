"""Make text safe to show to a model: it cannot imitate the conversation's structure, and no secret leaks."""

from __future__ import annotations

import functools
import os
import re

MAX_ERROR_CHARS = 2000
_MAX_PASSES = 8

# Patterns are strings, compiled by `re` with the first error: most starts see none.
_ROLE_TAGS = (
    r"(?i)</?\s*(?:\w+:)?(?:tool_calls?|function_calls?|tool_use|tool_results?|results?|responses?|outputs?|inputs?"
    r"|system|assistant|user|human|developer|invoke|parameter)\b[^<>]{0,200}>"
    r"|<\|[^<>|]{1,64}\|>"
)
_FENCES = r"`{3,}[\w-]*|~{3,}"
_CDATA = r"<!\[CDATA\[|\]\]>"
# C0 and C1 controls but tab and newline; zero-width and bidirectional marks; line and paragraph separators.
_INVISIBLE = "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
_ANSI = r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])"

_SECRET_SHAPES = (
    r"(?s)\b(?:sk|pk|rk)-[A-Za-z0-9_-]{16,}"
    r"|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}|\bglpat-[A-Za-z0-9_-]{16,}"
    r"|\bxox[abposr]-[A-Za-z0-9-]{10,}|\bhf_[A-Za-z0-9]{20,}|\bAKIA[0-9A-Z]{16}\b|\bAIza[0-9A-Za-z_-]{30,}"
    r"|\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{5,}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
)
_BEARER = r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{12,}"
_URL_PASSWORD = r"(?i)(\b[a-z][a-z0-9+.-]*://[^\s:/@]+):[^\s@/]+@"
_SECRET_NAME = r"(?i)(?:(?:^|_|api)key|token|secret|passw(?:or)?d|passphrase|credential)s?$"
_MIN_SECRET_CHARS = 8


def safe_error(message: str) -> str:
    """An error's text as the model may see it: no role tags, fences or controls, no secrets, at most 2,000 characters."""
    # A cut before the patterns run keeps a message of any size cheap; what they remove cannot bring back what was cut.
    text = message[: MAX_ERROR_CHARS * 8]
    text = re.sub(_ANSI, "", text)
    text = re.sub(_INVISIBLE, "", text)
    text = _without_structure(text)
    text = mask_secrets(well_formed(text)).strip()
    return text if len(text) <= MAX_ERROR_CHARS else text[: MAX_ERROR_CHARS - 1] + "…"


def _without_structure(text: str) -> str:
    for _ in range(_MAX_PASSES):  # removing one tag can join the halves of another
        cleaned = re.sub(_CDATA, "", re.sub(_FENCES, "", re.sub(_ROLE_TAGS, "", text)))
        if cleaned == text:
            return text
        text = cleaned
    return re.sub(r"[<>`~]", "", text)  # built to be stripped for ever


def mask_secrets(text: str) -> str:
    """Replace what looks like a secret, and the values of this process's own secret variables."""
    text = re.sub(_SECRET_SHAPES, "[secret]", text)
    text = re.sub(_BEARER, r"\1 [secret]", text)
    text = re.sub(_URL_PASSWORD, r"\1:[secret]@", text)
    for name, value in os.environ.items():
        if len(value) >= _MIN_SECRET_CHARS and value in text and re.search(_SECRET_NAME, name):
            text = text.replace(value, "[secret]")
    return text


def secret_values() -> tuple[str, ...]:
    """The values of this process's own secret variables."""
    encoded: dict[bytes, bytes] = os.environ._data  # type: ignore[attr-defined]  # decoding all takes fifty times as long
    return _secret_values(frozenset(encoded.items()))


@functools.lru_cache(maxsize=4)
def _secret_values(variables: frozenset[tuple[bytes, bytes]]) -> tuple[str, ...]:
    decoded = ((os.fsdecode(name), os.fsdecode(value)) for name, value in variables)
    return tuple(value for name, value in decoded if len(value) >= _MIN_SECRET_CHARS and re.search(_SECRET_NAME, name))


def secret_places(text: str, values: tuple[str, ...] | None = None) -> list[tuple[int, int]]:
    """Start and end of what looks like a secret, or is one of these values (by default those of this process)."""
    places = [match.span() for match in re.finditer(_SECRET_SHAPES, text)]
    places += [(match.end(1) + 1, match.end()) for match in re.finditer(_BEARER, text)]
    places += [(match.end(1) + 1, match.end() - 1) for match in re.finditer(_URL_PASSWORD, text)]
    for value in secret_values() if values is None else values:
        if value in text:
            places += [match.span() for match in re.finditer(re.escape(value), text)]
    return places


def well_formed(text: str) -> str:
    """The same text, with lone surrogates (which no encoding can carry) replaced by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
