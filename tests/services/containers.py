"""Real containers with real processes in them: what a sandbox is in the doubles of clouds."""

from __future__ import annotations

import asyncio
import contextlib
import json
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# The label of every container of a double, with the name of the double as its value.
OWNER = "handrail.double"
# Asks an engine for the containers that an environment should have removed.
THROW_AWAY = ("ps", "--all", "--filter=label=handrail.lifetime=passing", "--format={{.Names}}")
_KEPT_BYTES = 1 << 20
_MAX_UNREAD_BYTES = 16 << 20
_CHUNK_BYTES = 1 << 16


class NoSuchContainer(LookupError):
    """It never was, or it is gone."""


@dataclass(frozen=True)
class Engine:
    """A Docker engine, and the name of the double whose containers are meant."""

    host: str
    owner: str

    async def create(
        self, name: str, image: str, *, labels: Mapping[str, str], env: Mapping[str, str], options: Sequence[str] = (),
        command: Sequence[str] = (),
    ) -> None:  # fmt: skip
        """A container that does nothing but be there, unless there is a `command`."""
        labelled = {OWNER: self.owner, **labels}
        arguments = [*_pairs("--label", labelled), *_pairs("--env", env), *options]
        run = ["run", "--detach", "--init", "--network", "none", "--name", name, *arguments, image]
        await self.call(*run, *(command or ("sleep", "infinity")))

    async def inspect(self, name: str) -> dict[str, Any]:
        found = json.loads(await self.call("container", "inspect", name))[0]
        if found["Config"]["Labels"].get(OWNER) != self.owner:
            raise NoSuchContainer(name)
        return dict(found)

    async def find(self, labels: Mapping[str, str], *, stopped: bool = False) -> list[dict[str, Any]]:
        """What `inspect` says of those that run, newest first; and of those that do not."""
        filters = _pairs("--filter=label", {OWNER: self.owner, **labels}, separate=False)
        which = ["--all"] if stopped else []
        names = (await self.call("ps", "--quiet", "--no-trunc", *which, *filters)).split()
        return list(json.loads(await self.call("container", "inspect", *names))) if names else []

    async def remove(self, *names: str) -> None:
        with contextlib.suppress(NoSuchContainer):
            await self.call("rm", "--force", *names)

    async def call(self, *arguments: str) -> str:
        command = ["docker", "--host", self.host, *arguments]
        process = await asyncio.create_subprocess_exec(*command, stdin=DEVNULL, stdout=PIPE, stderr=PIPE)
        out, complaint = (part.decode(errors="replace").strip() for part in await process.communicate())
        if "No such container" in complaint or "is not running" in complaint:
            raise NoSuchContainer(complaint)
        if process.returncode != 0:
            raise RuntimeError(f"docker {' '.join(arguments)}: {complaint}")
        return out

    async def run(self, name: str, *arguments: str, stdin: bytes = b"") -> tuple[int, bytes, bytes]:
        """The exit code, output and complaints of a process in a container."""
        process = await self.execute(name, arguments)
        with contextlib.suppress(ConnectionError):
            await process.write(stdin, eof=True)
        out, complaints = await asyncio.gather(process.stdout.all(), process.stderr.all())
        return await process.wait(), out, complaints

    async def execute(
        self, name: str, arguments: Sequence[str], *, env: Mapping[str, str] | None = None, workdir: str = ""
    ) -> Process:
        if not (await self.inspect(name))["State"]["Running"]:
            raise NoSuchContainer(f"{name} is not running")
        options = [*_pairs("--env", env or {}), *(["--workdir", workdir] if workdir else [])]
        command = ["docker", "--host", self.host, "exec", "--interactive", *options, name, *arguments]
        return Process(await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, stderr=PIPE))


class Process:
    """A process in a container. It does not end because those who read and write it are gone."""

    def __init__(self, client: asyncio.subprocess.Process) -> None:
        assert client.stdin
        assert client.stdout
        assert client.stderr
        self._client, self._stdin = client, client.stdin
        self.stdout, self.stderr = Spool(), Spool()
        self.bytes_written = 0
        self.is_closed = False
        self._filling = [
            asyncio.create_task(self.stdout.fill(client.stdout)),
            asyncio.create_task(self.stderr.fill(client.stderr)),
        ]
        self._writing = asyncio.Lock()

    async def write(self, data: bytes, *, offset: int | None = None, eof: bool = False) -> None:
        """What was written already is not written again."""
        async with self._writing:
            new = data[max(0, self.bytes_written - offset) :] if offset is not None else data
            self._stdin.write(new)
            await self._stdin.drain()
            self.bytes_written += len(new)
            if eof:
                self.is_closed = True
                self._stdin.close()

    @property
    def exit_code(self) -> int | None:
        return self._client.returncode

    async def wait(self) -> int:
        return await self._client.wait()

    def discard(self, *unread: Spool) -> None:
        """Nobody will read these."""
        self._discarding = [asyncio.create_task(spool.drain()) for spool in unread]


class Spool:
    """Output that can be read from an offset on while it grows. What was read long ago is forgotten."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._forgotten = 0
        self._read = 0
        self._has_ended = False
        self._changed = asyncio.Condition()

    async def fill(self, source: asyncio.StreamReader) -> None:
        while chunk := await source.read(_CHUNK_BYTES):
            async with self._changed:
                await self._changed.wait_for(lambda: self._end - self._read < _MAX_UNREAD_BYTES)
                self._data += chunk
                self._changed.notify_all()
        async with self._changed:
            self._has_ended = True
            self._changed.notify_all()

    async def read_from(self, offset: int) -> AsyncIterator[bytes]:
        """Never empty chunks, until the end."""
        while True:
            async with self._changed:
                while self._end <= offset and not self._has_ended:
                    await self._changed.wait()
                if offset < self._forgotten:
                    raise LookupError(f"the output before {self._forgotten} is no longer kept")
                chunk = bytes(self._data[offset - self._forgotten :][:_CHUNK_BYTES])
                offset += len(chunk)
                self._read = max(self._read, offset)
                self._forget()
                self._changed.notify_all()
            if not chunk:
                return
            yield chunk

    async def all(self) -> bytes:
        return b"".join([chunk async for chunk in self.read_from(0)])

    async def drain(self) -> None:
        async for _ in self.read_from(0):
            pass

    @property
    def _end(self) -> int:
        return self._forgotten + len(self._data)

    def _forget(self) -> None:
        excess = self._read - self._forgotten - _KEPT_BYTES
        if excess > _KEPT_BYTES:
            del self._data[:excess]
            self._forgotten += excess


def _pairs(option: str, values: Mapping[str, str], *, separate: bool = True) -> list[str]:
    if not separate:
        return [f"{option}={key}={value}" for key, value in values.items()]
    return [text for key, value in values.items() for text in (option, f"{key}={value}")]
