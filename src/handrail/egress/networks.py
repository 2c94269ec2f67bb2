"""The network of each task: its proxy, name server and keys, and the variables by which its commands find them."""

import asyncio
import contextlib
import ipaddress
import os
import random
import shutil
import struct
import threading
from collections.abc import Coroutine, Mapping
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any, NamedTuple

from ..base.own_process import has_exited, runtime_id
from ..config.paths import cache_dir
from ..errors import Denied, HandrailError, ToolFailed
from ..net.url_guard import plain_host
from ..settings.schema import Config
from ..types import CancelToken, ToolContext
from .certificates import Authority, java_store
from .keys import SecretValues, TaskKeys
from .policy import HostPolicy
from .proxy import Proxy, program_of
from .questions import Questions

_PROXY = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
_HERE = "localhost,127.0.0.1,::1"
_CERTIFICATES = (
    *("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO", "PIP_CERT"),
    *("NPM_CONFIG_CAFILE", "AWS_CA_BUNDLE", "CARGO_HTTP_CAINFO", "DENO_CERT"),
)
_CLOSE_SECONDS = 5.0
_FAR_PORTS = range(20_000, 32_000)  # below those that a system gives away itself
_NAME_PORT = 53
_HEADER = struct.Struct(">HHHHHH")
_TYPES = {1: 4, 28: 6}  # A and AAAA, and the version of address that each is about
_ANSWER, _UNKNOWN = 0x8180, 0x8183
_MAX_ANSWERS = 20
_SECONDS = 10  # for which an answer holds


class FarEnd(NamedTuple):
    """How commands elsewhere reach a proxy here: it is to appear at `port` of their loopback, and `file` at `path`."""

    proxy: tuple[str, int]
    port: int
    path: str
    file: bytes


class _Network(NamedTuple):
    """Without secrets and a policy that was asked for there is no proxy, no variables and no bundle of certificates."""

    questions: Questions
    names: "NameServer"
    name_place: str
    proxy: Proxy | None = None
    proxy_place: str = ""
    variables: Mapping[str, str] = {}
    bundle: Path | None = None
    far_end: FarEnd | None = None


class Networks:
    """By task. A thread of its own serves all of them."""

    def __init__(self, config: Config) -> None:
        self._config, self._values, self._lock = config, SecretValues(config.secrets), threading.Lock()
        self._folder = cache_dir(config.home) / "egress"
        self._networks: dict[str, _Network] = {}
        self._contexts: dict[str, ToolContext] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def variables(self, task_id: str, *, asks: bool, is_far: bool = False) -> Mapping[str, str]:
        """What the task's commands get: the way out, the placeholders of keys, and whom to trust there. Raises ConfigError.
        `asks`: whether somebody is asked about hosts that are not listed. `is_far`: whether they run elsewhere, where `far_end`
        has to be made first."""
        known = self._networks.get(task_id)
        if known is not None and (known.proxy is None or (known.far_end is not None) != is_far):
            self.close_task(task_id)  # its commands ran somewhere else until now
        with self._lock:
            return self._of(task_id, asks, has_proxy=True, is_far=is_far).variables

    def far_end(self, task_id: str) -> FarEnd:
        """For a task with `is_far`."""
        found = self._networks[task_id].far_end
        assert found is not None
        return found

    def prepare(self, task_id: str, context: ToolContext, *, asks: bool) -> None:
        """A connection of the task waits, maybe its first one. Raises ConfigError."""
        with self._lock:
            self._contexts.setdefault(task_id, context)
            self._of(task_id, asks, has_proxy=False)

    def _of(self, task_id: str, asks: bool, *, has_proxy: bool, is_far: bool = False) -> _Network:
        if task_id not in self._networks:
            self._networks[task_id] = made = self._run(self._made(asks, has_proxy, is_far))
            if task_id in self._contexts:
                made.questions.begin(self._contexts[task_id])
        return self._networks[task_id]

    def begin(self, context: ToolContext, task_id: str) -> None:
        """A call of the task begins: its approver is asked from now on."""
        with self._lock:
            self._contexts[task_id] = context
            found = self._networks.get(task_id)
        if found is not None and self._loop is not None:
            self._loop.call_soon_threadsafe(found.questions.begin, context)

    def notes(self, task_id: str) -> list[str]:
        """What was refused during the task's call, for the model."""
        found = self._networks.get(task_id)
        return found.questions.notes() if found is not None else []

    def decide(self, task_id: str, program: str, where: tuple[str, int], cancel: CancelToken, *, is_udp: bool) -> str:
        """A program of the task wants to connect to an address, or to look up a name (port 0), and waits. Raises Denied. What
        is returned is where it is led instead: the task's own name server, or its proxy, where that puts a key in. Empty: where
        it wants to."""
        found, (host, port) = self._networks.get(task_id), where
        if found is None or self._loop is None:
            raise Denied(f"{program} wants {host}, and its task is over")
        if port and f"{plain_host(host)}:{port}" in (found.proxy_place, found.name_place):
            return ""
        if port == _NAME_PORT and is_udp:
            if found.far_end is not None:
                raise Denied(f"{program} looks up a name by itself; only what uses HTTPS_PROXY has a way out here")
            return found.name_place
        future = asyncio.run_coroutine_threadsafe(self._way(found, host, port, program), self._loop)
        forget = cancel.on_cancel(future.cancel)
        try:
            return future.result()
        except CancelledError:
            raise cancel.error() from None
        finally:
            forget()

    @staticmethod
    async def _way(network: _Network, host: str, port: int, program: str) -> str:
        if not port:
            with contextlib.suppress(ToolFailed, ValueError):  # it is not known, which the name server says
                await network.questions.look_up(host, lambda: program)
            return ""
        name, proxy = await network.questions.connect(host, port, lambda: program), network.proxy
        has_key = proxy is not None and proxy.keys is not None and proxy.keys.is_for(name, port)
        return proxy.entrance((name, port)) if proxy is not None and has_key and not proxy.is_far else ""

    def known_values(self) -> list[str]:
        """Values of secrets that were read so far, which no output may show."""
        return list(self._values.known.values())

    def close_task(self, task_id: str) -> None:
        with self._lock:
            found = self._networks.pop(task_id, None)
            self._contexts.pop(task_id, None)
        if found is not None:
            self._run(found.names.close())
            if found.proxy is not None:
                self._run(found.proxy.close())
            for bundle in filter(None, (found.bundle, found.bundle and found.bundle.with_suffix(".jks"))):
                bundle.unlink(missing_ok=True)

    def close(self) -> None:
        for task_id in list(self._networks):
            self.close_task(task_id)
        with self._lock:
            loop, self._loop = self._loop, None
        if loop is not None and self._thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            self._thread.join(_CLOSE_SECONDS)
        shutil.rmtree(self._folder / runtime_id(), ignore_errors=True)

    async def _made(self, asks: bool, has_proxy: bool, is_far: bool) -> _Network:
        config, secrets = self._config.network, self._config.secrets
        keys = TaskKeys(secrets, self._values)
        questions = Questions(HostPolicy(config, keys.hosts, asks=asks), config.resolve, is_far=is_far)
        names = NameServer(questions)
        name_place = await names.start()
        if not has_proxy:
            return _Network(questions, names, name_place)
        authority = Authority(keys.hosts) if secrets else None
        proxy = Proxy(questions, keys, authority, ca_file=config.ca_file, is_far=is_far)
        url = await proxy.start()
        bundle, far_end = self._folder / runtime_id() / f"{os.urandom(8).hex()}.pem", None
        if is_far:
            begin, _, own_port = url.rpartition(":")
            there = random.SystemRandom().choice(_FAR_PORTS)
            path = f"/tmp/{bundle.name}" if authority is not None else ""
            far_end = FarEnd(("127.0.0.1", int(own_port)), there, path, authority.bundle() if authority else b"")
            url, bundle = f"{begin}:{there}", Path(path)
        variables = {**dict.fromkeys(_PROXY, url), "NO_PROXY": _HERE, "no_proxy": _HERE, "NODE_USE_ENV_PROXY": "1"}
        # A JVM asks no variable where its proxy is. What it has there is found in its environment.
        place = ("Host=127.0.0.1", f"Port={url.rpartition(':')[2]}")
        options = (f"-D{scheme}.proxy{each}" for scheme in ("http", "https") for each in place)
        java = " ".join([os.environ.get("JAVA_TOOL_OPTIONS", ""), *options])
        if authority is not None:
            if far_end is None:
                self._write(bundle, authority.bundle())
                java += f' "-Djavax.net.ssl.trustStore={bundle.with_suffix(".jks")}" -Djavax.net.ssl.trustStoreType=jks'
            variables |= {**dict.fromkeys(_CERTIFICATES, str(bundle)), **keys.variables()}
        variables |= {"JAVA_TOOL_OPTIONS": java.strip()} if far_end is None else {}
        written = bundle if far_end is None else None
        return _Network(questions, names, name_place, proxy, url.rpartition("@")[2], variables, written, far_end)

    def _write(self, bundle: Path, content: bytes) -> None:
        """Where commands can read it and not write; what a killed runtime has left there is removed."""
        bundle.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        for other in self._folder.iterdir():
            if has_exited(other.name):
                shutil.rmtree(other, ignore_errors=True)
        bundle.write_bytes(content)
        bundle.with_suffix(".jks").write_bytes(java_store(content))

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=_serve, args=(self._loop,), name="handrail-network", daemon=True)
            self._thread.start()
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()


class NameServer(asyncio.DatagramProtocol):
    """On UDP. Names have no other records than addresses here."""

    def __init__(self, questions: Questions) -> None:
        self._questions = questions
        self._tasks: set[asyncio.Task[None]] = set()
        self.transport: asyncio.DatagramTransport | None = None

    async def start(self) -> str:
        """Where it listens: address and port."""
        loop = asyncio.get_running_loop()
        self.transport, _ = await loop.create_datagram_endpoint(lambda: self, local_addr=("127.0.0.1", 0))
        return f"127.0.0.1:{self.transport.get_extra_info('sockname')[1]}"

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self.transport is not None:
            self.transport.close()

    def datagram_received(self, data: bytes, address: tuple[str, int]) -> None:
        task = asyncio.ensure_future(self._serve(data, address))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, query: bytes, address: tuple[str, int]) -> None:
        with contextlib.suppress(ValueError, IndexError, struct.error):  # what is no question gets no answer
            answer = await self._answer(query, address)
            if self.transport is not None and not self.transport.is_closing():
                self.transport.sendto(answer, address)

    async def _answer(self, query: bytes, address: tuple[str, int]) -> bytes:
        number, flags, questions, *_ = _HEADER.unpack_from(query)
        if flags & 0xF800 or questions != 1:
            raise ValueError("not a question")
        name, end = _name(query)
        (kind,) = struct.unpack_from(">H", query, end)
        question, status, found = query[_HEADER.size : end + 4], _ANSWER, []
        try:
            if kind in _TYPES:
                known = await self._questions.look_up(name, lambda: program_of(address[1], "udp") or "a command")
                addresses = map(ipaddress.ip_address, known)
                found = [each.packed for each in addresses if each.version == _TYPES[kind]][:_MAX_ANSWERS]
        except HandrailError:  # a refusal is as final: programs would try again if it sounded like a failure
            status = _UNKNOWN
        records = (struct.pack(">HHHIH", 0xC00C, kind, 1, _SECONDS, len(each)) + each for each in found)
        return _HEADER.pack(number, status, 1, len(found), 0, 0) + question + b"".join(records)


def _name(query: bytes) -> tuple[str, int]:
    """The name in question, and where it ends."""
    labels, at = [], _HEADER.size
    while size := query[at]:
        if size > 63:
            raise ValueError("a name in a question is written out")
        labels.append(query[at + 1 : at + 1 + size].decode("ascii"))
        at += 1 + size
    return ".".join(labels), at + 1
