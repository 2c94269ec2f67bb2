"""The network of each task: its proxy, name server and keys, and the variables by which its commands find them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import threading
from collections.abc import Coroutine, Mapping
from concurrent.futures import CancelledError
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..base.own_process import has_exited, runtime_id
from ..config.paths import cache_dir
from ..errors import Denied, ToolFailed
from .certificates import Authority
from .keys import TaskKeys
from .name_server import NameServer
from .policy import HostPolicy
from .proxy import Proxy
from .questions import Questions
from .secret_values import SecretValues

if TYPE_CHECKING:
    from ..settings.schema import Config
    from ..types import CancelToken, ToolContext

_PROXY = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
_HERE = "localhost,127.0.0.1,::1"
_CERTIFICATES = (
    *("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO", "PIP_CERT"),
    *("NPM_CONFIG_CAFILE", "AWS_CA_BUNDLE", "CARGO_HTTP_CAINFO", "DENO_CERT"),
)
_CLOSE_SECONDS = 5.0
_NAME_PORT = 53


class _Network(NamedTuple):
    """Without secrets and a policy that was asked for there is no proxy, no variables and no bundle of certificates."""

    questions: Questions
    names: NameServer
    name_place: str
    proxy: Proxy | None = None
    proxy_place: str = ""
    variables: Mapping[str, str] = {}
    bundle: Path | None = None


class Networks:
    """By task. A thread of its own serves all of them."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._values = SecretValues(config.secrets)
        self._lock = threading.Lock()
        self._networks: dict[str, _Network] = {}
        self._contexts: dict[str, ToolContext] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def variables(self, task_id: str, *, asks: bool) -> Mapping[str, str]:
        """What the task's commands get: the way out, the placeholders of keys, and whom to trust there. Raises ConfigError.

        `asks`: whether somebody is asked about hosts that are not listed.
        """
        with self._lock:
            return self._of(task_id, asks, has_proxy=True).variables

    def prepare(self, task_id: str, context: ToolContext, *, asks: bool) -> None:
        """A connection of the task waits, maybe its first one. Raises ConfigError."""
        with self._lock:
            self._contexts.setdefault(task_id, context)
            self._of(task_id, asks, has_proxy=False)

    def _of(self, task_id: str, asks: bool, *, has_proxy: bool) -> _Network:
        if task_id not in self._networks:
            self._networks[task_id] = made = self._run(self._made(asks, has_proxy))
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
        """A program of the task wants to connect to an address, or to look up a name (port 0), and waits. Raises Denied.

        What is returned is where it is led instead: the task's own name server. Empty: where it wants to.
        """
        found, (host, port) = self._networks.get(task_id), where
        if found is None or self._loop is None:
            raise Denied(f"{program} wants {host}, and its task is over")
        if f"{host}:{port}" in (found.proxy_place, found.name_place):
            return ""
        if port == _NAME_PORT and is_udp:
            return found.name_place
        asked = found.questions.connect(host, port, lambda: program) if port else self._look_up(found, host, program)
        future = asyncio.run_coroutine_threadsafe(asked, self._loop)
        forget = cancel.on_cancel(future.cancel)
        try:
            future.result()
        except CancelledError:
            raise cancel.error() from None
        finally:
            forget()
        return ""

    @staticmethod
    async def _look_up(network: _Network, name: str, program: str) -> None:
        with contextlib.suppress(ToolFailed, ValueError):  # it is not known, which the name server says
            await network.questions.look_up(name, lambda: program)

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
            if found.bundle is not None:
                found.bundle.unlink(missing_ok=True)

    def close(self) -> None:
        for task_id in list(self._networks):
            self.close_task(task_id)
        with self._lock:
            loop, self._loop = self._loop, None
        if loop is not None and self._thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            self._thread.join(_CLOSE_SECONDS)
        shutil.rmtree(self._folder / runtime_id(), ignore_errors=True)

    @property
    def _folder(self) -> Path:
        return cache_dir(self._config.home) / "egress"

    async def _made(self, asks: bool, has_proxy: bool) -> _Network:
        config, secrets = self._config.network, self._config.secrets
        keys = TaskKeys(secrets, self._values)
        questions = Questions(HostPolicy(config, keys.hosts, asks=asks), config.resolve)
        names = NameServer(questions)
        name_place = await names.start()
        if not has_proxy:
            return _Network(questions, names, name_place)
        authority = Authority(keys.hosts) if secrets else None
        proxy = Proxy(questions, keys, authority, ca_file=config.ca_file)
        url = await proxy.start()
        variables = {**dict.fromkeys(_PROXY, url), "NO_PROXY": _HERE, "no_proxy": _HERE, "NODE_USE_ENV_PROXY": "1"}
        bundle = self._folder / runtime_id() / f"{os.urandom(8).hex()}.pem"
        if authority is not None:
            self._write(bundle, authority.bundle())
            variables |= {**dict.fromkeys(_CERTIFICATES, str(bundle)), **keys.variables()}
        return _Network(questions, names, name_place, proxy, url.rpartition("@")[2], variables, bundle)

    def _write(self, bundle: Path, content: bytes) -> None:
        """Where commands can read it and not write; what a killed runtime has left there is removed."""
        bundle.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        for other in self._folder.iterdir():
            if has_exited(other.name):
                shutil.rmtree(other, ignore_errors=True)
        bundle.write_bytes(content)

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
