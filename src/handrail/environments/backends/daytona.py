"""Commands in a Daytona sandbox, by Daytona's own SDK (`pip install 'handrail[daytona]'`).

Of all that its SDK offers only a terminal carries bytes both ways, so the far side runs on one that leaves them alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ...errors import ConfigError
from ..backend_settings import option
from ..cloud import KEPT, LABEL, Cloud, CloudEnvironment, Found, Sandbox
from ..transport import bundle
from ..transport.stream import Stream

_HOUR = 3600
_MAX_BYTES = 1 << 16  # in one message
_CREATE_SECONDS = 300
_END_SECONDS = 5.0
_SIGNS = ("DAYTONA_API_KEY", "DAYTONA_JWT_TOKEN")
# Daytona counts idle time in minutes, and does not count what goes over a terminal.
_ACTIVITY_SECONDS = 25.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DaytonaSettings:
    image: str | None = option(None, "an image of a registry, such as python:3.12-slim")
    snapshot: str | None = option(
        None, "a Daytona snapshot instead of an image; Daytona's default one if neither is set"
    )
    cpu: int | None = option(None, "cores; with an image only", least=1)
    memory_mb: int | None = option(None, "memory in MiB, rounded up to GiB; with an image only", least=1)
    disk_gb: int | None = option(None, "disk in GiB; with an image only", least=1)
    region: str | None = option(None, "the region to run in")
    network: bool = option(True, "whether commands reach the network")
    lifetime: int | None = option(
        None,
        "seconds after which a sandbox ends whatever happens, in minutes; an hour, or never if it is kept",
        least=60,
    )
    idle_timeout: int = option(600, "seconds without a runtime after which it is stopped, in minutes", least=60)
    persistent: bool = option(False, "keep the sandbox after `close`, and find it again by its task")
    cwd: str = option("", "where the shell starts; the home folder if it is empty")
    env: Mapping[str, str] = option({}, "environment variables of the shell")
    python: str = option("python3", "the name of Python 3.8 or newer there")
    keepalive: int = option(
        10, "seconds between keep-alives; after eight missed ones, everything that runs there ends", least=1, most=600
    )


class DaytonaEnvironment(CloudEnvironment):
    """A bash in a sandbox of Daytona.

    A persistent one is stopped by `close`, unless something that was started to survive runs in it, and after its idle time.
    Its files stay, and the next environment of its task starts it again.
    """

    name = package = "daytona"
    credentials = "set DAYTONA_API_KEY to a key of https://app.daytona.io/dashboard/keys"
    settings_type = DaytonaSettings

    @classmethod
    def open_cloud(cls, settings: DaytonaSettings) -> Cloud:
        return DaytonaCloud(settings)

    @classmethod
    def may_have_credentials(cls) -> bool:
        # The SDK also reads these files.
        return any(os.environ.get(name) for name in _SIGNS) or any(map(os.path.exists, (".env", ".env.local")))

    @classmethod
    def is_refusal(cls, error: Exception) -> bool:
        import daytona

        return isinstance(
            error,
            daytona.DaytonaAuthenticationError | daytona.DaytonaAuthorizationError | daytona.DaytonaForbiddenError,
        )

    @classmethod
    def check_settings(cls, settings: DaytonaSettings) -> None:
        if settings.image and settings.snapshot:
            raise ConfigError(f"{cls.name}.snapshot: a sandbox is made from an image or from a snapshot, not from both")
        for key in ("cpu", "memory_mb", "disk_gb"):
            if getattr(settings, key) is not None and not settings.image:
                raise ConfigError(f"{cls.name}.{key}: a snapshot has resources of its own; set {cls.name}.image too")


BACKEND = DaytonaEnvironment


class DaytonaCloud:
    def __init__(self, settings: DaytonaSettings) -> None:
        import daytona

        self._settings = settings
        self._client: Any = daytona.AsyncDaytona()

    async def hello(self) -> None:
        async for _ in self._list({LABEL: "1"}, limit=1):
            return

    async def create(self, labels: Mapping[str, str]) -> Sandbox:
        sandbox = await self._client.create(self._parameters(labels), timeout=_CREATE_SECONDS)
        return DaytonaSandbox(sandbox)

    def _parameters(self, labels: Mapping[str, str]) -> Any:
        import daytona

        settings = self._settings
        lifetime = settings.lifetime or (0 if settings.persistent else _HOUR)
        common: dict[str, Any] = {
            "labels": dict(labels),
            "auto_stop_interval": _minutes(settings.idle_timeout),
            "ttl_minutes": _minutes(lifetime),
            "ephemeral": not settings.persistent,
            "network_block_all": not settings.network,
            "target": settings.region,
        }
        if settings.image is None:
            return daytona.CreateSandboxFromSnapshotParams(snapshot=settings.snapshot, **common)
        memory = None if settings.memory_mb is None else math.ceil(settings.memory_mb / 1024)
        resources = daytona.Resources(cpu=settings.cpu, memory=memory, disk=settings.disk_gb)
        return daytona.CreateSandboxFromImageParams(image=settings.image, resources=resources, **common)

    async def find_again(self, labels: Mapping[str, str]) -> Sandbox | None:
        import daytona

        async for sandbox in self._list(labels):
            if sandbox.state != daytona.SandboxState.STARTED:
                await sandbox.start(timeout=_CREATE_SECONDS)
            return DaytonaSandbox(sandbox)
        return None

    async def leave(self, sandbox: Sandbox, *, is_busy: bool) -> None:
        if not is_busy:
            await (await self._client.get(sandbox.id)).stop()

    async def end(self, identifier: str) -> None:
        import daytona

        with contextlib.suppress(daytona.DaytonaNotFoundError):
            await (await self._client.get(identifier)).delete()

    async def all(self) -> AsyncIterator[Found]:
        async for sandbox in self._list({LABEL: "1"}):
            if KEPT not in sandbox.labels:
                yield Found(sandbox.id, sandbox.labels)

    async def close(self) -> None:
        await self._client.close()

    def _list(self, labels: Mapping[str, str], limit: int | None = None) -> Any:
        import daytona

        return self._client.list(daytona.ListSandboxesQuery(labels=dict(labels), limit=limit))


class DaytonaSandbox:
    def __init__(self, sandbox: Any) -> None:
        self._sandbox = sandbox
        self.id: str = sandbox.id

    async def is_running(self) -> bool:
        import daytona

        try:
            await self._sandbox.refresh_data()
        except daytona.DaytonaNotFoundError:
            return False
        return bool(self._sandbox.state == daytona.SandboxState.STARTED)

    def stream(self, words: list[str]) -> Stream:
        return DaytonaStream(self, self._sandbox, words)


class DaytonaStream:
    """A terminal whose shell is replaced by the shell host, which switches the terminal to raw mode."""

    def __init__(self, owner: DaytonaSandbox, sandbox: Any, words: list[str]) -> None:
        self._owner, self._sandbox, self._words = owner, sandbox, words
        self._handle: Any = None
        self._activity: asyncio.Task[None] | None = None

    async def open(self, on_data: Callable[[bytes], None]) -> None:
        self._handle = await self._sandbox.process.create_pty_session(uuid.uuid4().hex, on_data=on_data)
        # A blank first, so that it is not in the shell's history. An interactive shell would not exit by itself.
        await self._handle.send_input(f" exec {bundle.shell_words(self._words)} || exit 127\n")
        self._activity = asyncio.create_task(self._stay_active())

    async def _stay_active(self) -> None:
        while True:
            with contextlib.suppress(Exception):  # an SDK raises anything; the next one may get through
                await self._sandbox.refresh_activity()
            await asyncio.sleep(_ACTIVITY_SECONDS)

    async def write(self, data: bytes) -> None:
        for at in range(0, len(data), _MAX_BYTES):
            await self._handle.send_input(data[at : at + _MAX_BYTES])

    async def wait(self) -> str:
        result = await self._handle.wait()
        if not await self._owner.is_running():
            return "the sandbox has ended or was stopped"
        return f"the process in it ended with code {result.exit_code}: {result.error or ''}"

    async def close(self) -> None:
        """The shell host was asked to end by a frame, because a terminal has no end of input."""
        if self._activity is not None:
            self._activity.cancel()
        if self._handle is None:
            return
        try:
            async with asyncio.timeout(_END_SECONDS):
                await self._handle.wait()
        except TimeoutError:
            await self._handle.kill()
        finally:
            await self._handle.disconnect()


def _minutes(seconds: int) -> int:
    return math.ceil(seconds / 60)
