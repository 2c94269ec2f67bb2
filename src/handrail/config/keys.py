"""Where API keys come from: the environment, else the system's keyring. They are stored nowhere else."""

import os

# `keyring set handrail OPENAI_API_KEY` puts a key where we look for it.
KEYRING_SERVICE = "handrail"
_SHOWN = "[the key]"
# Shorter ones are placeholders such as "none", and appear in other texts.
_MIN_KEY_CHARS = 8


def key_of(variable: str) -> str:
    """The key that a variable names, "" when there is none."""
    if not variable:
        return ""
    return os.environ.get(variable, "").strip() or keyring_value(variable)


def without_key(text: str, key: str) -> str:
    """A provider's message without the key: some repeat what they were sent."""
    return text.replace(key, _SHOWN) if len(key) >= _MIN_KEY_CHARS else text


def keyring_value(variable: str) -> str:
    """ "" when there is none, or no keyring."""
    try:
        import keyring
    except ImportError:
        return ""
    try:
        return keyring.get_password(KEYRING_SERVICE, variable) or ""
    except Exception:  # noqa: BLE001  a keyring may fail in any way; then there is no key
        return ""
