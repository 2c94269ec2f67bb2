"""Where keys come from: the environment, else the system's keyring where there is one. They are kept nowhere else."""

from __future__ import annotations

import os


def key_of(variable: str) -> str:
    """The key that a variable names, or nothing."""
    if not variable:
        return ""
    key = os.environ.get(variable, "")
    if key:
        return key
    try:
        import keyring  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        return ""
    try:
        return keyring.get_password("handrail", variable) or ""
    except Exception:  # noqa: BLE001  a keyring may fail in any way, and then there is no key
        return ""
