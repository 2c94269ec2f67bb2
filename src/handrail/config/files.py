"""Read a configuration file whole, and replace it so that a crash leaves the old file or the new one."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from ..base.agent_ancestry import refuse_agents
from ..errors import ConfigError

MAX_BYTES = 1024 * 1024
# A writer holds the lock for some milliseconds; one that is stopped must not stop the others for good.
LOCK_TIMEOUT = 30.0


def read_text(path: Path) -> str | None:
    """The file's text, or None when there is no file."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise ConfigError("is not a regular file", path=str(path))
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        if path.is_symlink():
            raise ConfigError(f"is a link to {path.readlink()}, which does not exist", path=str(path)) from None
        return None
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", path=str(path)) from None
    if len(data) > MAX_BYTES:
        raise ConfigError(f"is larger than {MAX_BYTES:,} bytes; a configuration is not", path=str(path))
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError("is not UTF-8 text; save it as UTF-8", path=str(path), line=line) from None


@contextlib.contextmanager
def locked(path: Path) -> Iterator[Path]:
    """Keep other writers out, of this process and of others. Gives the real file, behind symbolic links.

    Everything that is configured, trusted, pinned or kept as a login is changed under this lock. Raises Denied in a process
    that an agent's tool started: it would change the rules that the agent is held to.
    """
    refuse_agents(f"change {path.name}")
    import filelock

    target = Path(os.path.realpath(path))
    try:
        make_private(target.parent)
        lock = filelock.FileLock(f"{target}.lock", timeout=LOCK_TIMEOUT, poll_interval=0.005)
        lock.acquire()
    except filelock.Timeout:
        message = f"another writer has held {target}.lock for {LOCK_TIMEOUT:.0f} seconds; end it and try again"
        raise ConfigError(message, path=str(path)) from None
    except OSError as error:
        raise _cannot("be locked for a change", path, error) from None
    try:
        yield target
    finally:
        lock.release()


def make_private(folder: Path) -> None:
    """Make a folder that only this user can enter, and those above it that are missing, whatever the umask."""
    if folder.is_dir():
        return
    make_private(folder.parent)
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)


def write_text(path: Path, text: str) -> None:
    """Replace the file, keeping its mode and owner. The caller holds the lock."""
    data = text.encode()
    if len(data) > MAX_BYTES:
        raise ConfigError(f"would be larger than {MAX_BYTES:,} bytes", path=str(path))
    try:
        _replace(path, data)
    except OSError as error:
        raise _cannot("be written", path, error) from None


def _cannot(what: str, path: Path, error: OSError) -> ConfigError:
    return ConfigError(f"cannot {what}: {error.strerror} ({error.filename})", path=str(path))


def _replace(path: Path, data: bytes) -> None:
    import tempfile

    prefix, suffix = f".{path.name}.", ".tmp"
    for leftover in path.parent.iterdir():
        # Of a writer that was killed. The lock is ours, so no living writer has one.
        if leftover.name.startswith(prefix) and leftover.name.endswith(suffix):
            leftover.unlink()
    descriptor, name = tempfile.mkstemp(prefix=prefix, suffix=suffix, dir=path.parent)
    temporary = Path(name)
    try:
        with open(descriptor, "wb") as file:
            _copy_owner_and_mode(path, descriptor)
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync(path.parent)


def _copy_owner_and_mode(path: Path, descriptor: int) -> None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return  # a temporary file has mode 0600, which is what a new configuration gets
    if (found.st_uid, found.st_gid) != (os.geteuid(), os.getegid()):
        with contextlib.suppress(PermissionError):  # only root may give a file away
            os.fchown(descriptor, found.st_uid, found.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(found.st_mode))


def _sync(folder: Path) -> None:
    """Make the new name survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
