"""Say where a file that was just written cannot be read by those that it is for."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable

from .text import decode

_MAX_BYTES = 1 << 20


def syntax_error(path: str, data: bytes) -> str:
    """The error and its line; empty if there is none, or the language is none that is known here."""
    check = _CHECKS.get(path.rpartition(".")[2].lower())
    if check is None or len(data) > _MAX_BYTES or (text := decode(data)) is None:
        return ""
    try:
        check(text.body)
    except Exception as error:  # noqa: BLE001  each parser has its own
        return "" if isinstance(error, RecursionError) else " ".join(str(error).split())[:300]
    return ""


def _python(text: str) -> None:
    with warnings.catch_warnings(action="ignore"):
        compile(text, "this file", "exec", dont_inherit=True)


def _yaml(text: str) -> None:
    from ruamel.yaml import YAML  # heavy, and few files are YAML

    list(YAML(typ="rt", pure=True).load_all(text))


def _toml(text: str) -> None:
    import tomllib  # few files are TOML

    tomllib.loads(text)


_CHECKS: dict[str, Callable[[str], object]] = {
    "py": _python, "pyi": _python, "json": json.loads, "yaml": _yaml, "yml": _yaml, "toml": _toml,
}  # fmt: skip
