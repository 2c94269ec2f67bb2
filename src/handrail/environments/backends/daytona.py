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
from typing import TYPE_CHECKING, Any

from ...base.lazy_module import lazy_import
from ...errors import ConfigError
from ..backend_table import option
from ..cloud import KEPT, LABEL, CloudEnvironment, CloudSettings, Found
from ..transport import bundle
from ..transport.stream import Stream

if TYPE_CHECKING:
    import daytona
else:
    daytona = lazy_import("daytona")

_HOUR = 3600
_MAX_BYTES = 1 << 16  # in one message
_CREATE_SECONDS, _END_SECONDS = 300, 5.0
_SIGNS = ("DAYTONA_API_KEY", "DAYTONA_JWT_TOKEN")
# Daytona counts idle time in minutes, and does not count what goes over a terminal.
_ACTIVITY_SECONDS = 25.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DaytonaSettings(CloudSettings):
    image: str | None = option(None, "an image of a registry, such as python:3.12-slim")
    snapshot: str | None = option(
        None, "a Daytona snapshot instead of an image; Daytona's default one if neither is set"
    )
    cpu: int | None = option(None, "cores; with an image only", least=1)
    memory_mb: int | None = option(None, "memory in MiB, rounded up to GiB; with an image only", least=1)
    disk_gb: int | None = option(None, "disk in GiB; with an image only", least=1)
    lifetime: int | None = option(
        None,
        "seconds after which a sandbox ends whatever happens, in minutes; an hour, or never if it is kept",
        least=60,
    )
    idle_timeout: int = option(600, "seconds without a runtime after which it is stopped, in minutes", least=60)


class DaytonaCloud:
    def __init__(self, settings: DaytonaSettings) -> None:
        self._settings = settings
        self._client: Any = daytona.AsyncDaytona()

    async def hello(self) -> None:
        async for _ in self._list({LABEL: "1"}, limit=1):
            return

    def id_of(self, sandbox: Any) -> str:
        return str(sandbox.id)

    async def is_running(self, sandbox: Any) -> bool:
        try:
            await sandbox.refresh_data()
        except daytona.DaytonaNotFoundError:
            return False
        return bool(sandbox.state == daytona.SandboxState.STARTED)

    def stream(self, sandbox: Any, words: list[str]) -> Stream:
        return DaytonaStream(self, sandbox, words)

    async def create(self, labels: Mapping[str, str]) -> Any:
        settings = self._settings
        lifetime = settings.lifetime or (0 if settings.persistent else _HOUR)
        common: dict[str, Any] = {
            "labels": dict(labels),
            "auto_stop_interval": math.ceil(settings.idle_timeout / 60),
            "ttl_minutes": math.ceil(lifetime / 60),
            "ephemeral": not settings.persistent,
            "network_block_all": not settings.network,
            "target": settings.region,
        }
        if settings.image is None:
            wanted: Any = daytona.CreateSandboxFromSnapshotParams(snapshot=settings.snapshot, **common)
        else:
            memory = None if settings.memory_mb is None else math.ceil(settings.memory_mb / 1024)
            resources = daytona.Resources(cpu=settings.cpu, memory=memory, disk=settings.disk_gb)
            wanted = daytona.CreateSandboxFromImageParams(image=settings.image, resources=resources, **common)
        return await self._client.create(wanted, timeout=_CREATE_SECONDS)

    async def find_again(self, labels: Mapping[str, str]) -> Any | None:
        async for sandbox in self._list(labels):
            if sandbox.state != daytona.SandboxState.STARTED:
                await sandbox.start(timeout=_CREATE_SECONDS)
            return sandbox
        return None

    async def leave(self, sandbox: Any, *, is_busy: bool) -> None:
        if not is_busy:
            await (await self._client.get(sandbox.id)).stop()

    async def end(self, identifier: str) -> None:
        with contextlib.suppress(daytona.DaytonaNotFoundError):
            await (await self._client.get(identifier)).delete()

    async def all(self) -> AsyncIterator[Found]:
        async for sandbox in self._list({LABEL: "1"}):
            if KEPT not in sandbox.labels:
                yield Found(sandbox.id, sandbox.labels)

    async def close(self) -> None:
        await self._client.close()

    def _list(self, labels: Mapping[str, str], limit: int | None = None) -> Any:
        return self._client.list(daytona.ListSandboxesQuery(labels=dict(labels), limit=limit))


class DaytonaStream:
    """A terminal whose shell is replaced by the shell host, which switches the terminal to raw mode."""

    def __init__(self, cloud: DaytonaCloud, sandbox: Any, words: list[str]) -> None:
        self._cloud, self._sandbox, self._words = cloud, sandbox, words
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
        if not await self._cloud.is_running(self._sandbox):
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


class DaytonaEnvironment(CloudEnvironment):
    """A bash in a sandbox of Daytona.

    A persistent one is stopped by `close`, unless something that was started to survive runs in it, and after its idle time.
    Its files stay, and the next environment of its task starts it again.
    """

    name = package = "daytona"
    credentials = "set DAYTONA_API_KEY to a key of https://app.daytona.io/dashboard/keys"
    settings_type = DaytonaSettings
    cloud_type = DaytonaCloud

    @classmethod
    def may_have_credentials(cls) -> bool:
        # The SDK also reads these files.
        return any(os.environ.get(name) for name in _SIGNS) or any(map(os.path.exists, (".env", ".env.local")))

    @classmethod
    def is_refusal(cls, error: Exception) -> bool:
        refusals = daytona.DaytonaAuthenticationError, daytona.DaytonaAuthorizationError, daytona.DaytonaForbiddenError
        return isinstance(error, refusals)

    @classmethod
    def check_settings(cls, settings: Any) -> None:
        if settings.image and settings.snapshot:
            raise ConfigError(f"{cls.name}.snapshot: a sandbox is made from an image or from a snapshot, not from both")
        for key in ("cpu", "memory_mb", "disk_gb"):
            if getattr(settings, key) is not None and not settings.image:
                raise ConfigError(f"{cls.name}.{key}: a snapshot has resources of its own; set {cls.name}.image too")


BACKEND = DaytonaEnvironment
