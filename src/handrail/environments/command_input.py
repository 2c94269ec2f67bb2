"""What a shell gets: the text of a command, and those of this process's environment variables that commands may see."""

import os
import re
import shlex
import subprocess
from collections.abc import Collection, Mapping
from functools import lru_cache

from ..base.own_process import MARKER
from ..base.safe_text import mask_secrets
from .errors import CommandRefused

# Wider than what is masked in messages: a command that needs one of these can get it by name.
_SECRET_NAME = (
    r"(?i)(?:^|_)(?:api_?key|access_?key|private_?key|secret|token|auth|passw(?:or)?d|passphrase|credentials?|pat|"
    r"webhook)s?(?:_|$)"
    r"|(?:apikey|token|secret|passw(?:or)?d|_pwd|_key)s?$"
)
# Names that look like the above and are needed: where something is, not the thing itself.
_NOT_SECRET = r"(?i)(?:_proxy|_(?:file|path|dir|sock|socket|pid)|^xauthority|^git_askpass|^ssh_askpass)$"
_LOGIN_SECONDS = 10
_MAX_COMMAND_BYTES = 32 << 20
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def clean_environment(allowed: Collection[str] = ()) -> dict[str, str]:
    """This process's variables without its secrets, by name or by value. `allowed` are secrets to include by name. A marker is
    added that says whose shell it is, so that what runs there cannot answer for the user."""
    return {**_clean(tuple(os.environ.items()), tuple(allowed)), MARKER: "1"}


def login_environment(allowed: Collection[str] = ()) -> dict[str, str]:
    """The variables of a login shell, with the same left out. It runs the user's start-up files: seconds, sometimes."""
    return dict(_login(tuple(clean_environment(allowed).items())))


@lru_cache(maxsize=4)  # some hundred environments may start from the same
def _clean(items: tuple[tuple[str, str], ...], allowed: tuple[str, ...]) -> Mapping[str, str]:
    return {name: value for name, value in items if name in allowed or not _is_secret(name, value)}


def check_variables(env: Mapping[str, object]) -> None:
    """Raises CommandRefused for names and values that a program cannot get."""
    for name, value in env.items():
        if not _NAME.fullmatch(name):
            raise CommandRefused(f"{name!r} cannot be the name of an environment variable: letters, digits and _ only")
        if not isinstance(value, str):
            raise CommandRefused(f"the environment variable {name} must be text, not {value!r}")
        if "\0" in value:
            raise CommandRefused(f"the value of {name} contains a NUL character, which no environment variable can")


def is_secret_name(name: str) -> bool:
    return re.search(_SECRET_NAME, name) is not None and re.search(_NOT_SECRET, name) is None


def _is_secret(name: str, value: str) -> bool:
    return is_secret_name(name) or (mask_secrets(value) != value and not re.search(_NOT_SECRET, name))


@lru_cache(maxsize=4)
def _login(items: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    before = dict(items)
    try:
        answer = subprocess.run(
            ["bash", "-l", "-c", "printf '\\0'; env -0"],
            env=before,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_LOGIN_SECONDS,
            start_new_session=True,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return before
    # What start-up files print comes before the first NUL.
    lines = answer.stdout.partition(b"\0")[2].split(b"\0")
    return dict(os.fsdecode(line).split("=", 1) for line in lines if b"=" in line)


def encoded(text: str) -> bytes:
    if "\0" in text:
        why = "the command contains a NUL character, which no shell accepts; write it as $'\\\\0' in printf"
        raise CommandRefused(why)
    try:
        encoded = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        place = f"U+{ord(text[error.start]):04X} at position {error.start}"
        raise CommandRefused(f"the command contains {place}, which is not a character; leave it out") from None
    if len(encoded) > _MAX_COMMAND_BYTES:
        why = f"the command has {len(encoded):,} bytes; write the data to a file, and name that in the command"
        raise CommandRefused(why)
    return encoded


def with_variables(text: bytes, env: Mapping[str, str] | None) -> bytes:
    """The command with its own variables, which are gone when it has ended."""
    if not env:
        return text
    check_variables(env)
    words = " ".join(f"{name}={shlex.quote(value)}" for name, value in env.items())
    command = shlex.quote(text.decode("utf-8", "surrogateescape"))
    return f"{words} command eval {command}".encode("utf-8", "surrogateescape")
