"""The network of each task: its proxy and keys, and the variables by which its commands find them."""

from __future__ import annotations

import asyncio
import os
import shutil
import threading
from concurrent.futures import CancelledError, Future
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ..base.runtime_id import has_exited, runtime_id
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
    from collections.abc import Coroutine

    from ..settings.schema import Config
    from ..types import CancelToken, ToolContext

_PROXY = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
_HERE = "localhost,127.0.0.1,::1"
_CERTIFICATES = (
    *("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO", "PIP_CERT"),
    *("NPM_CONFIG_CAFILE", "AWS_CA_BUNDLE", "CARGO_HTTP_CAINFO", "DENO_CERT"),
)
_FOLDER = "egress"
_CLOSE_SECONDS = 5.0
_NAME_PORT = 53


class Held(Protocol):
    """What waits: `HeldCall` of the environments."""

    @property
    def operation(self) -> str: ...
    @property
    def target(self) -> str: ...
    @property
    def program(self) -> str: ...
    @property
    def detail(self) -> str: ...


class _Network(NamedTuple):
    questions: Questions
    proxy: Proxy
    place: str  # of the proxy
    names: NameServer
    name_server: str  # where that is
    variables: dict[str, str]
    bundle: Path | None


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

    def variables(self, task_id: str) -> dict[str, str]:
        """What the task's commands get: the way out, the placeholders of keys, and whom to trust there. Raises ConfigError."""
        with self._lock:
            if task_id not in self._networks:
                self._networks[task_id] = made = self._made()
                if task_id in self._contexts:
                    made.questions.begin(self._contexts[task_id])
            return self._networks[task_id].variables

    def begin(self, context: ToolContext, task_id: str) -> None:
        """A call of the task begins: its approver is asked from now on."""
        with self._lock:
            self._contexts[task_id] = context
            found = self._networks.get(task_id)
        if found is not None:
            self._run(_do(found.questions.begin, context))

    def notes(self, task_id: str) -> list[str]:
        """What was refused during the task's call, for the model."""
        found = self._networks.get(task_id)
        return found.questions.notes() if found is not None else []

    def decide(self, task_id: str, host: str, port: int, held: Held, cancel: CancelToken) -> str:
        """A program of the task wants to connect to an address, or to look up a name (port 0), and waits. Raises Denied.

        What is returned is where it is led instead: the task's own name server. Empty: where it wants to.
        """
        found = self._networks.get(task_id)
        if found is None or self._loop is None:
            raise Denied(f"{held.program} wants {held.target}, and its task is over")
        if f"{host}:{port}" in (found.place, found.name_server):
            return ""
        if port == _NAME_PORT and held.detail == "udp" and held.operation == "connect":
            return found.name_server
        questions = found.questions
        work = (
            questions.connect(host, port, lambda: held.program)
            if port
            else questions.look_up(host, lambda: held.program)
        )
        future = asyncio.run_coroutine_threadsafe(_done(work), self._loop)
        forget = cancel.on_cancel(future.cancel)
        try:
            future.result()
        except (ToolFailed, ValueError):
            pass  # a name that is not known: the name server says so
        except CancelledError:
            raise cancel.error() from None
        finally:
            forget()
        return ""

    def known_values(self) -> list[str]:
        """Values of secrets that were read so far, which no output may show."""
        return self._values.known()

    def close_task(self, task_id: str) -> None:
        with self._lock:
            found = self._networks.pop(task_id, None)
            self._contexts.pop(task_id, None)
        if found is not None:
            self._run(_do(found.names.close))
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
        return cache_dir(self._config.home) / _FOLDER

    def _made(self) -> _Network:
        config = self._config.network
        keys = TaskKeys(self._config.secrets, self._values) if self._config.secrets else None
        questions = Questions(HostPolicy(config, keys.hosts if keys is not None else ()), config.resolve)
        authority = Authority(keys.hosts) if keys is not None else None
        proxy = Proxy(questions, keys, authority, ca_file=config.ca_file)
        url, names = self._run(proxy.start()), NameServer(questions)
        name_server = self._run(names.start())
        variables = {**dict.fromkeys(_PROXY, url), **dict.fromkeys((name.lower() for name in _PROXY), url)}
        variables |= {"NO_PROXY": _HERE, "no_proxy": _HERE, "NODE_USE_ENV_PROXY": "1"}
        bundle = None
        if keys is not None and authority is not None:
            bundle = self._written(authority.bundle())
            variables |= {**dict.fromkeys(_CERTIFICATES, str(bundle)), **keys.variables()}
        return _Network(questions, proxy, url.rpartition("@")[2], names, name_server, variables, bundle)

    def _written(self, bundle: bytes) -> Path:
        """Where commands can read it and not write; what a killed runtime has left there is removed."""
        own = self._folder / runtime_id()
        own.mkdir(mode=0o700, parents=True, exist_ok=True)
        for other in self._folder.iterdir():
            if has_exited(other.name):
                shutil.rmtree(other, ignore_errors=True)
        path = own / f"{os.urandom(8).hex()}.pem"
        path.write_bytes(bundle)
        return path

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=_serve, args=(self._loop,), name="handrail-network", daemon=True)
            self._thread.start()
        future: Future[Any] = asyncio.run_coroutine_threadsafe(work, self._loop)
        return future.result()


async def _done(work: Coroutine[Any, Any, object]) -> None:
    await work


async def _do(function: Any, *arguments: object) -> None:
    function(*arguments)


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()
