"""Make text safe to show a model: nothing in it can pass for the conversation's own structure, and no secret leaks."""

from __future__ import annotations

import os
import re

MAX_ERROR_CHARS = 2000

_ROLE_TAGS = re.compile(
    r"</?\s*(?:tool_calls?|function_calls?|tool_use|tool_results?|results?|responses?|outputs?|inputs?"
    r"|system|assistant|user|human|developer|invoke|parameter)\b[^<>]{0,200}>"
    r"|<\|[^<>|]{1,64}\|>",
    re.IGNORECASE,
)
_FENCES = re.compile(r"`{3,}[\w-]*|~{3,}")
_CDATA = re.compile(r"<!\[CDATA\[|\]\]>")
# C0 and C1 controls but tab and newline; zero-width and bidirectional marks; line and paragraph separators.
_INVISIBLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")

_SECRET_SHAPES = re.compile(
    r"\b(?:sk|pk|rk)-[A-Za-z0-9_-]{16,}"
    r"|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}|\bglpat-[A-Za-z0-9_-]{16,}"
    r"|\bxox[abposr]-[A-Za-z0-9-]{10,}|\bhf_[A-Za-z0-9]{20,}|\bAKIA[0-9A-Z]{16}\b|\bAIza[0-9A-Za-z_-]{30,}"
    r"|\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{5,}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
    re.DOTALL,
)
_BEARER = re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{12,}")
_URL_PASSWORD = re.compile(r"(\b[a-z][a-z0-9+.-]*://[^\s:/@]+):[^\s@/]+@", re.IGNORECASE)
_SECRET_NAME = re.compile(r"(?i)(?:api_?key|token|secret|passw(?:or)?d|credential|private_key)s?$")
_SHORTEST_SECRET_VALUE = 8


def safe_error(message: str) -> str:
    """An error's text as the model may see it: no role tags, fences or controls, no secrets, at most 2,000 characters."""
    # A cut before the patterns run keeps a message of any size cheap; what they remove cannot bring back what was cut.
    text = message[: MAX_ERROR_CHARS * 8]
    text = _ANSI.sub("", text)
    text = _INVISIBLE.sub("", text)
    previous = None
    while previous != text:  # removing one tag can join the halves of another
        previous = text
        text = _CDATA.sub("", _FENCES.sub("", _ROLE_TAGS.sub("", text)))
    text = mask_secrets(well_formed(text)).strip()
    return text if len(text) <= MAX_ERROR_CHARS else text[: MAX_ERROR_CHARS - 1] + "…"


def mask_secrets(text: str) -> str:
    """Replace what looks like a secret, and the values of this process's own secret variables."""
    text = _SECRET_SHAPES.sub("[secret]", text)
    text = _BEARER.sub(r"\1 [secret]", text)
    text = _URL_PASSWORD.sub(r"\1:[secret]@", text)
    for name, value in os.environ.items():
        if len(value) >= _SHORTEST_SECRET_VALUE and value in text and _SECRET_NAME.search(name):
            text = text.replace(value, "[secret]")
    return text


def well_formed(text: str) -> str:
    """The same text, with lone surrogates (which no encoding can carry) replaced by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
