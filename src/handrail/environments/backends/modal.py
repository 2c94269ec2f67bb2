"""Commands in a Modal sandbox, by Modal's own SDK (`pip install 'handrail[modal]'`)."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...base.lazy_module import lazy_import
from ..backend_table import option
from ..cloud import KEPT, LABEL, TASK, CloudEnvironment, CloudSettings, Found
from ..transport.stream import Stream

if TYPE_CHECKING:
    import modal
else:
    modal = lazy_import("modal")

_HOUR, _DAY = 3600, 24 * 3600
_MAX_BYTES = 1 << 20
_END_SECONDS = 5.0
_SHOWN_BYTES = 500
_KILLED = 137
_POLLS, _POLL_SECONDS = 25, 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class ModalSettings(CloudSettings):
    image: str | None = option(
        None, "an image of a registry, such as python:3.12-slim; Modal's own Debian if it is not set"
    )
    add_python: str | None = option(None, "a version of Python to add to an image that has none, such as 3.12")
    app: str = option("handrail", "the Modal app that the sandboxes belong to; it is made if it is missing")
    cpu: float | None = option(None, "cores", least=0.125)
    memory_mb: int | None = option(None, "memory in MiB", least=128)
    gpu: str | None = option(None, "a GPU, such as T4 or A100:2")
    lifetime: int | None = option(
        None, "seconds after which a sandbox ends whatever happens; an hour, or a day if it is kept", least=1, most=_DAY
    )
    idle_timeout: int = option(
        600, "seconds without a command and without a runtime after which it ends", least=1, most=_DAY
    )


class ModalCloud:
    def __init__(self, settings: ModalSettings) -> None:
        self._settings = settings
        self._sandboxes: list[Any] = []

    async def hello(self) -> None:
        client: Any = await modal.Client.from_env.aio()
        await client.hello.aio()

    async def create(self, labels: Mapping[str, str]) -> Any:
        settings = self._settings
        lifetime = settings.lifetime or (_DAY if settings.persistent else _HOUR)
        if settings.image is None:
            image: Any = modal.Image.debian_slim()
        else:
            image = modal.Image.from_registry(settings.image, add_python=settings.add_python)
        made = await modal.Sandbox.create.aio(
            app=await modal.App.lookup.aio(settings.app, create_if_missing=True),
            image=image,
            name=f"{LABEL}-{labels[TASK]}"[:64] if settings.persistent else None,
            tags=dict(labels),
            timeout=lifetime,
            idle_timeout=min(settings.idle_timeout, lifetime),
            cpu=settings.cpu,
            memory=settings.memory_mb,
            gpu=settings.gpu,
            region=settings.region,
            block_network=not settings.network,
        )
        return self._held(made)

    def _held(self, sandbox: Any) -> Any:
        self._sandboxes.append(sandbox)
        return sandbox

    def id_of(self, sandbox: Any) -> str:
        return str(sandbox.object_id)

    async def is_running(self, sandbox: Any) -> bool:
        return await sandbox.poll.aio() is None

    def stream(self, sandbox: Any, words: list[str]) -> Stream:
        return ModalStream(sandbox, words)

    async def find_again(self, labels: Mapping[str, str]) -> Any | None:
        try:
            name = f"{LABEL}-{labels[TASK]}"[:64]
            return self._held(await modal.Sandbox.from_name.aio(self._settings.app, name))
        except modal.exception.NotFoundError:
            return None  # or its lifetime was over

    async def leave(self, sandbox: Any, *, is_busy: bool) -> None:
        """Keep it running, for its idle time."""

    async def end(self, identifier: str) -> None:
        with contextlib.suppress(modal.exception.NotFoundError):
            sandbox = await modal.Sandbox.from_id.aio(identifier)
            await sandbox.terminate.aio()

    async def all(self) -> AsyncIterator[Found]:
        try:
            app = await modal.App.lookup.aio(self._settings.app)
        except modal.exception.NotFoundError:
            return
        async for sandbox in modal.Sandbox.list.aio(app_id=app.app_id, tags={LABEL: "1"}):
            labels = await sandbox.get_tags.aio()
            if KEPT not in labels:
                yield Found(sandbox.object_id, labels)

    async def close(self) -> None:
        """Close the connections to sandboxes. The SDK keeps the client itself for the whole process."""
        while self._sandboxes:
            await self._sandboxes.pop().detach.aio()


class ModalStream:
    """A process started with `exec`, whose streams are bytes."""

    def __init__(self, sandbox: Any, words: list[str]) -> None:
        self._sandbox, self._words = sandbox, words
        self._process: Any = None
        self._reading: set[asyncio.Task[None]] = set()
        self._stderr = bytearray()

    async def open(self, on_data: Callable[[bytes], None]) -> None:
        self._process = await self._sandbox.exec.aio(*self._words, text=False)
        for source, sink in ((self._process.stdout, on_data), (self._process.stderr, self._on_stderr)):
            self._reading.add(asyncio.create_task(_read(source, sink)))

    def _on_stderr(self, data: bytes) -> None:
        self._stderr = (self._stderr + data)[-_SHOWN_BYTES:]

    async def write(self, data: bytes) -> None:
        for at in range(0, len(data), _MAX_BYTES):
            self._process.stdin.write(data[at : at + _MAX_BYTES])
            await self._process.stdin.drain.aio()

    async def wait(self) -> str:
        await asyncio.gather(*self._reading)
        code = None
        for _ in range(_POLLS):
            if await self._sandbox.poll.aio() is not None:
                return "the sandbox has ended, and its files are gone"
            code = await self._process.poll.aio()
            if code != _KILLED:
                break
            await asyncio.sleep(_POLL_SECONDS)  # a sandbox kills its processes a moment before it reports its end
        return f"the process in it ended with code {code}: {self._stderr.decode('utf-8', 'replace').strip()}"

    async def close(self) -> None:
        if self._process is None:
            return
        try:
            self._process.stdin.write_eof()
            await self._process.stdin.drain.aio()
            await asyncio.wait(self._reading, timeout=_END_SECONDS)
        finally:
            for task in self._reading:
                task.cancel()


async def _read(source: Any, sink: Callable[[bytes], None]) -> None:
    async for data in source:
        sink(data)


class ModalEnvironment(CloudEnvironment):
    """A bash in a sandbox of Modal. A persistent one has a name, and lives until its lifetime or idle time is over."""

    name = package = "modal"
    credentials = "run `modal token new`, or set MODAL_TOKEN_ID and MODAL_TOKEN_SECRET"
    settings_type = ModalSettings
    cloud_type = ModalCloud

    @classmethod
    def may_have_credentials(cls) -> bool:
        signs = ("MODAL_TOKEN_ID", "MODAL_OAUTH_REFRESH_TOKEN", "MODAL_IS_REMOTE")
        file = os.environ.get("MODAL_CONFIG_PATH") or os.path.expanduser("~/.modal.toml")
        return any(os.environ.get(name) for name in signs) or os.path.exists(file)

    @classmethod
    def is_refusal(cls, error: Exception) -> bool:
        return isinstance(error, modal.exception.AuthError | modal.exception.PermissionDeniedError)


BACKEND = ModalEnvironment
