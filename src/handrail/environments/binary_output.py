"""Say what binary output is, instead of showing pages of escapes."""

from __future__ import annotations

import re

_SAMPLE_BYTES = 8192
_FEWEST_BYTES = 256  # less of it can be shown as it is
_MAX_STRAY = 0.15  # a list that NULs part has some, and a text in an old encoding
_SHOWN_BYTES = 32
_STRINGS_CHARS = 2000
_STRAY = bytes([*range(7), *range(14, 27), *range(28, 32), 127])
_STRINGS = re.compile(rb"[\x20-\x7e]{6,}")


def is_binary(data: bytes) -> bool:
    """Whether what an output begins with is no text."""
    if len(data) < _FEWEST_BYTES:
        return False
    sample = data[:_SAMPLE_BYTES]
    strays = len(sample) - len(sample.translate(None, _STRAY))
    undecodable = sample.decode("utf-8", "replace").count("\ufffd")
    return strays + undecodable > _MAX_STRAY * len(sample)


def describe(data: bytes, *, total_bytes: int) -> str:
    """Its size, its first bytes, and the words in it."""
    note = (
        f"[binary output of {total_bytes:,} bytes, beginning with {data[:_SHOWN_BYTES].hex(' ')}; "
        "write it to a file, or look at it with file, xxd or strings]"
    )
    words = "\n".join(found.group().decode() for found in _STRINGS.finditer(data))
    return f"{note}\nText in it:\n{words[:_STRINGS_CHARS]}" if words else note
