"""Commands in a cloud sandbox: what the backends that reach one through an SDK have in common. The first command creates a
sandbox, and `close` ends it. Its labels say who made it. It ends by itself when its lifetime is over or it is idle, and
everything in it ends after a while without a keep-alive from here: a killed runtime leaves nothing for long. `prune` ends what
one has left immediately."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import logging
import re
import shlex
from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, ClassVar, NamedTuple, Protocol, Self, TypeVar

from ..base.own_process import has_exited, runtime_id
from ..errors import ConfigError, ToolError
from ..types import Unavailable
from .backend_table import option, read_settings
from .base import ProcessState
from .errors import EnvironmentStartError, LoginRefused
from .live_environment import LiveEnvironment
from .transport import bundle
from .transport.channel import Channel
from .transport.link import Fatal, Link, Lost
from .transport.session import Session
from .transport.stream import SdkLoop, Stream, StreamChannel, sdk_loops

T = TypeVar("T")
log = logging.getLogger(__name__)
CHECK_SECONDS = 8.0
CREATE_SECONDS = 600.0  # an image may have to be built first
ASK_SECONDS = 30.0
LABEL, OWNER, TASK, KEPT = "handrail", "handrail-owner", "handrail-task", "handrail-kept"
_SILENT_KEEPALIVES = 8
_MAX_LABEL = 63  # what clouds allow in a label's value


class Found(NamedTuple):
    """A sandbox made by Handrail, by this process or another."""

    id: str
    labels: Mapping[str, str]


class Cloud(Protocol):
    """An SDK, whose sandboxes are objects of its own. All coroutines run in its loop, and raise whatever the SDK raises."""

    def __init__(self, settings: Any) -> None:
        """Called in the loop; the package is installed."""

    async def hello(self) -> None:
        """Make a request, to see whether the credentials are accepted."""

    async def create(self, labels: Mapping[str, str]) -> Any: ...

    async def find_again(self, labels: Mapping[str, str]) -> Any | None:
        """A persistent one, started if necessary."""

    def id_of(self, sandbox: Any) -> str: ...

    async def is_running(self, sandbox: Any) -> bool: ...

    def stream(self, sandbox: Any, words: list[str]) -> Stream:
        """A process in it, not yet started."""

    async def leave(self, sandbox: Any, *, is_busy: bool) -> None:
        """Leave a persistent one that is not used for now. `is_busy`: something that was started to survive runs in it."""

    async def end(self, identifier: str) -> None: ...

    def all(self) -> AsyncIterator[Found]:
        """Those with Handrail's label."""

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudSettings:
    region: str | None = option(None, "the region to run in")
    network: bool = option(True, "whether commands reach the network")
    persistent: bool = option(False, "keep the sandbox after `close`, and find it again by its task")
    cwd: str = option("", "where the shell starts; the image's folder, or the home folder, if it is empty")
    env: Mapping[str, str] = option({}, "environment variables of the shell")
    python: str = option("python3", "the name of Python 3.8 or newer there")
    keepalive: int = option(
        10, "seconds between keep-alives; after eight missed ones, everything that runs there ends", least=1, most=600
    )


class CloudEnvironment(LiveEnvironment):
    """A bash in a sandbox. It is `isolated`, and `persistent` when the settings say so."""

    isolated = True
    package: ClassVar[str]  # the name of the SDK's module and of our extra
    credentials: ClassVar[str]  # how to get some
    settings_type: ClassVar[type[CloudSettings]]
    cloud_type: ClassVar[type[Cloud]]

    def __init__(self, settings: CloudSettings, *, task_id: str) -> None:
        super().__init__()
        self._settings, self._task_id, self.persistent = settings, task_id, settings.persistent
        self._sdk: tuple[SdkLoop, Cloud] | None = None
        self._sandbox: Any = None
        self._is_busy = True  # as far as is known

    @classmethod
    @abstractmethod
    def is_refusal(cls, error: Exception) -> bool:
        """Whether an SDK's error means that the login was refused."""

    @classmethod
    @abstractmethod
    def may_have_credentials(cls) -> bool:
        """Whether the SDK would find credentials, checked without loading it, which takes seconds."""

    @classmethod
    def check_settings(cls, settings: Any) -> None:
        """Raise ConfigError for settings that contradict each other."""

    @classmethod
    def from_settings(
        cls, settings: Mapping[str, Any], *, task_id: str, cwd: str | None = None, env: Mapping[str, str] | None = None
    ) -> Self:
        read = read_settings(cls.settings_type, settings, backend=cls.name, cwd=cwd, env=env)
        cls.check_settings(read)
        return cls(read, task_id=task_id)

    @classmethod
    def check(cls, settings: Mapping[str, Any]) -> Unavailable | None:
        """Try to log in to the cloud: None if that works."""
        try:
            environment = cls.from_settings(settings, task_id="")
            if find_spec(cls.package) is not None and not cls.may_have_credentials():
                return Unavailable(f"{cls.name} does not let us in: there are no credentials", cls.credentials)
            environment._ask(lambda cloud: cloud.hello(), CHECK_SECONDS)
        except LoginRefused as error:
            return Unavailable(str(error), cls.credentials)
        except (ConfigError, ToolError) as error:
            return Unavailable(str(error))
        return None

    @classmethod
    def prune(cls, dry_run: bool, settings: Mapping[str, Any] | None = None) -> list[str]:
        """End the sandboxes of processes of this machine that have exited. Without a login there are none."""
        environment = cls.from_settings(settings or {}, task_id="")
        if not cls.may_have_credentials():
            return []
        try:
            return environment._ask(lambda cloud: _prune(cloud, dry_run=dry_run), ASK_SECONDS)
        except (LoginRefused, SdkMissing):
            return []

    def connect(self, state: bytes | None) -> Link:
        settings = self._settings
        try:
            with self._translated():
                self._ensure_sandbox()
                return Session(
                    self,
                    env=dict(settings.env),
                    cwd=settings.cwd,
                    state=state,
                    must_have_cwd=True,
                    effects=self.effects_elsewhere(),
                    on_held=self.held.answer,
                )
        finally:
            if self._sandbox is None:
                self._release()

    def open(self) -> Channel:
        """As a `channel.Launcher`: start a Python in the sandbox."""
        loop, cloud = self._opened()
        stream = cloud.stream(self._sandbox, [self._settings.python, *bundle.PYTHON_ARGUMENTS])
        timeout = float(self._settings.keepalive * _SILENT_KEEPALIVES)
        return StreamChannel(stream, loop, where=f"the sandbox {cloud.id_of(self._sandbox)}", client_timeout=timeout)

    def _opened(self) -> tuple[SdkLoop, Cloud]:
        if self._sdk is None:
            try:
                importlib.import_module(self.package)
            except ImportError as error:
                fix = shlex.quote(f"handrail[{self.package}]")
                raise SdkMissing(f"the package {self.package} is not installed ({error}); pip install {fix}") from None
            loop = sdk_loops.acquire()
            try:
                self._sdk = loop, loop.run(self._make_cloud(), ASK_SECONDS)
            except BaseException:
                sdk_loops.release(loop)
                raise
        return self._sdk

    async def _make_cloud(self) -> Cloud:
        return self.cloud_type(self._settings)

    def _ensure_sandbox(self) -> None:
        loop, cloud = self._opened()
        if self._sandbox is not None:
            if loop.run(cloud.is_running(self._sandbox), ASK_SECONDS):
                return
            self._sandbox = None
        # How it is found again. A persistent one belongs to its task, and not to a process.
        labels = {LABEL: "1", TASK: label_value(self._task_id or "none")}
        labels |= {KEPT: "1"} if self.persistent else {OWNER: runtime_id()}
        if self.persistent:
            self._sandbox = loop.run(cloud.find_again(labels), CREATE_SECONDS)
        if self._sandbox is None:
            self._sandbox = loop.run(cloud.create(labels), CREATE_SECONDS)

    def forked(self) -> None:
        self._sdk = self._sandbox = None

    def close(self) -> None:
        self._check_process()
        if self.persistent and self._link is not None:
            with contextlib.suppress(ToolError):  # it does not answer: then nothing is stopped
                survivors = [one for one in self.processes() if one.survives]
                self._is_busy = any(one.poll().state is ProcessState.RUNNING for one in survivors)
        super().close()

    def disconnected(self) -> None:
        sandbox, self._sandbox = self._sandbox, None
        if self._sdk is None:
            return
        loop, cloud = self._sdk
        named = "" if sandbox is None else cloud.id_of(sandbox)
        try:
            if sandbox is not None:
                leave = cloud.leave(sandbox, is_busy=self._is_busy) if self.persistent else cloud.end(named)
                loop.run(leave, ASK_SECONDS)
        except Exception as error:  # noqa: BLE001  an SDK raises anything; the sandbox ends by itself
            log.warning("the sandbox %s could not be ended, and ends by itself later: %s", named, error)
        finally:
            self._release()

    def _release(self) -> None:
        """Close the SDK and its loop; they are opened again when they are needed."""
        sdk, self._sdk = self._sdk, None
        if sdk is not None:
            loop, cloud = sdk
            with contextlib.suppress(Exception):  # the same, and nothing of it is needed any longer
                loop.run(cloud.close(), ASK_SECONDS)
            sdk_loops.release(loop)

    def _ask(self, question: Callable[[Cloud], Coroutine[Any, Any, T]], seconds: float) -> T:
        """Ask the SDK something, without a sandbox."""
        with self._translated():
            try:
                loop, cloud = self._opened()
                return loop.run(question(cloud), seconds)
            finally:
                self._release()

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (ToolError, ConfigError, Fatal, Lost):
            raise
        except TimeoutError:
            raise EnvironmentStartError(f"{self.name} did not answer in time") from None
        except Exception as error:  # noqa: BLE001  an SDK raises anything
            if self.is_refusal(error):
                raise LoginRefused(f"{self.name} does not let us in: {error}; {self.credentials}") from None
            raise EnvironmentStartError(f"{self.name}: {type(error).__name__}: {error}") from None


class SdkMissing(EnvironmentStartError):
    """The SDK is not installed."""


async def _prune(cloud: Cloud, *, dry_run: bool) -> list[str]:
    orphans = [found async for found in cloud.all() if has_exited(found.labels.get(OWNER, ""))]
    if not dry_run:
        for orphan in orphans:
            await cloud.end(orphan.id)
    return [f"the sandbox {orphan.id} of the task {orphan.labels.get(TASK, '?')}" for orphan in orphans]


def label_value(text: str) -> str:
    """The text as a label's value; different texts have different values."""
    if re.fullmatch(r"[A-Za-z0-9._-]+", text) and len(text) <= _MAX_LABEL - 15:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:12]
    return f"{re.sub(r'[^A-Za-z0-9._-]+', '-', text)[: _MAX_LABEL - 30]}-{digest}"
