"""What every test stands on: a home of its own, and nothing left running behind it."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import importlib.util
import itertools
import os
import re
import shutil
import signal
import socket
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from handrail import model_tools
from handrail.core import registry as registry_module
from handrail.core.builtin import registry as builtin_registry
from handrail.core.registry import ToolRegistry
from handrail.environments.transport import link
from handrail.plugins.hook_manager import HookManager, hooks
from handrail.runtime.dispatch import Runtime
from handrail.store.results import FileResultStore

from . import shell_hosts
from .support import PATIENCE_SECONDS, wait_until

pytest_plugins = ["tests.services.fixtures"]

# The same examples in every run, so that a red run is a change of the code. `make soak` looks for new ones.
_COMMON: dict[str, Any] = {
    "deadline": None,
    "database": None,
    "suppress_health_check": [hypothesis.HealthCheck.too_slow],
}
hypothesis.settings.register_profile("steady", derandomize=True, max_examples=50, **_COMMON)
hypothesis.settings.register_profile("explore", max_examples=2000, **_COMMON)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))

# Folders with tests that last: they wait for what others have written, such as browsers, clusters, engines and frameworks.
_LASTING = ("adapters", "batch", "contract", "docs", "e2e", "effects", "mcp_client", "serve", "services")
# `make soak` asks for whole products of cases, `make test` for enough of each to meet every value of every factor.
EVERY_CASE = bool(os.environ.get("EVERY_CASE"))
_FAILED = pytest.StashKey[bool]()
_numbers = itertools.count()  # of the folders of tests
_loops: list[tuple[weakref.ref[asyncio.AbstractEventLoop], threading.Thread]] = []


def pytest_configure(config: pytest.Config) -> None:
    """In the background of a shell Ctrl-C is ignored, by us and by all that the tests start. Some of it is about Ctrl-C."""
    config.addinivalue_line("markers", "by_turns(fixture, *groups): each case takes one value of the fixture in turn")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    _find_python_at_once()


def _find_python_at_once() -> None:
    """Where `python3` is a script that looks for one, as pyenv's is, commands of the tests get what it would find: it takes
    several times as long as what they do with it."""
    found = shutil.which("python3")
    if found and Path(found).read_bytes()[:2] == b"#!":
        os.environ["PATH"] = f"{sys.base_prefix}/bin{os.pathsep}{os.environ['PATH']}"


def pytest_sessionstart(session: pytest.Session) -> None:
    """Every worker imports all tests. Each begins with its share of those that are not compiled yet, so that nearly all
    find what the others have compiled."""
    worker = getattr(session.config, "workerinput", None)
    if worker is None or sys.dont_write_bytecode:
        return
    folder = Path(__file__).parent
    files = [file for file in sorted(folder.rglob("test_*.py")) if (file.parent / "__init__.py").exists()]
    for file in files[int(worker["workerid"].removeprefix("gw")) :: worker["workercount"]]:
        cache = Path(importlib.util.cache_from_source(str(file))).with_suffix("")
        if not any(cache.parent.glob(f"{cache.name}-pytest-*.pyc")):
            with contextlib.suppress(Exception, pytest.skip.Exception):  # collecting it will tell
                importlib.import_module(".".join(file.relative_to(folder.parent).with_suffix("").parts))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """The tests stay until the end: to look through all of them for garbage, now or whenever one collects it, is in vain."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


def _is_selection(config: pytest.Config) -> bool:
    """Whether somebody says which tests are meant, by name or as those that failed."""
    return bool(config.option.keyword or config.getoption("lf", False) or any("::" in given for given in config.args))


def _take_turns(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of tests that are marked `by_turns("fixture", (value, value), ...)`, keep each row of their other parameters once per
    group: with the first value of a group, the next row with the next one, and so on through the module. Without groups all
    values are one; a value that is in none is kept. `by_turns()` takes a test out of what its module is marked with."""
    found: dict[pytest.Item, tuple[Any, Any]] = {}
    values: dict[Any, list[Any]] = {}
    rows: dict[pytest.Item, Any] = {}
    for item in items:
        marker, case = item.get_closest_marker("by_turns"), getattr(item, "callspec", None)
        if marker is None or case is None or not marker.args or marker.args[0] not in case.params:
            continue
        fixture, *groups = marker.args
        value = case.params[fixture]
        group = next((group for group in groups if value in group), None)
        if groups and group is None:
            continue
        function = item.nodeid.partition("[")[0]
        rows[item] = (function, tuple(sorted((name, at) for name, at in case.indices.items() if name != fixture)))
        found[item] = (function, group), value
        among = values.setdefault((function, group), [])
        if value not in among:
            among.append(value)
    turns: dict[Path, dict[Any, int]] = {}
    dropped = set()
    for item, (place, value) in found.items():
        turn = turns.setdefault(item.path, {}).setdefault(rows[item], len(turns[item.path]))
        if values[place][turn % len(values[place])] != value:
            dropped.add(item)
    if dropped:
        config.hook.pytest_deselected(items=list(dropped))
        items[:] = [item for item in items if item not in dropped]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Each worker gets an equal part of the list, and whoever is done takes from the end of another's. So each part begins with
    its share of the tests that last: none of them is begun when the others have nothing left to do."""
    if not EVERY_CASE and not _is_selection(config):
        _take_turns(config, items)
    workers = getattr(config, "workerinput", {}).get("workercount", 1)
    folder = Path(__file__).parent
    lasting: list[list[pytest.Item]] = []
    others: list[pytest.Item] = []
    for _, of_file in itertools.groupby(items, key=lambda item: item.path):
        tests = list(of_file)
        place = tests[0].path.relative_to(folder).parts[0] if tests[0].path.is_relative_to(folder) else ""
        if place in _LASTING:
            lasting.append(tests)
        else:
            others += tests
    ordered: list[pytest.Item] = []
    for number in range(workers):
        size = (len(items) - len(ordered)) // (workers - number)
        part = list(itertools.chain.from_iterable(lasting[number::workers]))
        rest = max(0, size - len(part))
        ordered += [*part, *others[:rest]]
        del others[:rest]
    items[:] = [*ordered, *others]


def _new_folder(factory: pytest.TempPathFactory, name: str) -> Path:
    """`factory.mktemp` reads the names of all folders to number a new one: after thousands of tests it takes longer than they."""
    folder = factory.getbasetemp() / f"{name}-{next(_numbers)}"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As pytest's, but for its number. Short, because the path of a socket has to be."""
    return _new_folder(tmp_path_factory, re.sub(r"\W", "_", request.node.name)[:12])


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A HANDRAIL_HOME of the test's own, and no setting from the user's environment."""
    for name in [name for name in os.environ if name.startswith("HANDRAIL_")]:
        monkeypatch.delenv(name)
    folder = _new_folder(tmp_path_factory, "home")
    monkeypatch.setenv("HANDRAIL_HOME", str(folder))
    model_tools.reset()
    builtin_registry.runner = None  # the runtime that a test before this one has made is not this one's
    yield folder
    model_tools.reset()


@pytest.fixture(autouse=True, scope="session")
def _shell_hosts_are_forked() -> Iterator[None]:
    """Most tests need a shell, and are not about the start of the process that forks it: that is forked too, from one that has
    loaded everything. All programs that tests start (the CLI, servers) start theirs as users do."""
    original = link.start_process

    def start_process(role: str, client: socket.socket, arguments: dict[str, Any]) -> Any:
        start = original if shell_hosts.are_real() else shell_hosts.start_process
        return start(role, client, arguments)

    link.start_process = start_process
    yield
    link.start_process = original


@pytest.fixture(autouse=True, scope="session")
def _loops_are_counted() -> Iterator[None]:
    original = asyncio.BaseEventLoop.__init__

    def counted(self: asyncio.BaseEventLoop) -> None:
        original(self)
        _loops.append((weakref.ref(self), threading.current_thread()))

    asyncio.BaseEventLoop.__init__ = counted  # type: ignore[method-assign]
    yield
    asyncio.BaseEventLoop.__init__ = original  # type: ignore[method-assign]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    report = yield
    item.stash[_FAILED] = item.stash.get(_FAILED, False) or report.failed  # type: ignore[attr-defined]
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """What a failed test left open is kept by its traceback. Closed later, it would make an innocent test fail."""
    result = yield
    if item.stash.get(_FAILED, False):
        for name in ("last_type", "last_value", "last_traceback", "last_exc"):
            sys.__dict__.pop(name, None)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            gc.collect()
    return result


@pytest.fixture(autouse=True)
def _nothing_is_left_running(request: pytest.FixtureRequest, home: Path) -> Iterator[None]:
    yield
    model_tools.reset()  # ends what the default runtime started
    wait_until(lambda: not _busy_threads(), otherwise=lambda: f"threads still busy: {_busy_threads()}")
    try:
        if _lost_loops():
            gc.collect()  # an exception that a test kept keeps alive what it passed through, loops too
        if not request.node.stash.get(_FAILED, False):
            wait_until(lambda: not _lost_loops(), otherwise=lambda: f"event loops left open: {_lost_loops()}")
    finally:
        _loops.clear()


@pytest.fixture
def registry() -> ToolRegistry:
    return ToolRegistry()


@pytest.fixture
def results(tmp_path: Path) -> FileResultStore:
    return FileResultStore(tmp_path / "results")


@pytest.fixture
def hook_manager() -> HookManager:
    return HookManager(timeout=PATIENCE_SECONDS)


@pytest.fixture
def runtime(registry: ToolRegistry, results: FileResultStore, hook_manager: HookManager) -> Runtime:
    return Runtime(registry, results=results, hooks=hook_manager)


@pytest.fixture
def held() -> Iterator[threading.Event]:
    """What a handler waits on that is meant not to return; it is set when the test is over."""
    event = threading.Event()
    yield event
    event.set()


class _Stubborn:
    """An async handler that goes on when it is cancelled, until it is told that the test is over."""

    def __init__(self) -> None:
        self.over = threading.Event()

    async def __call__(self, args: Any, **kw: Any) -> str:
        end = time.monotonic() + PATIENCE_SECONDS
        while not self.over.is_set() and time.monotonic() < end:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.02)
        return "too late"


@pytest.fixture
def stubborn() -> Iterator[_Stubborn]:
    handler = _Stubborn()
    yield handler
    handler.over.set()


@pytest.fixture
def restless_threads() -> Iterator[None]:
    """Threads take turns every few instructions, so that a race is met in a second instead of a year."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.fixture
def default_registry(home: Path) -> Iterator[ToolRegistry]:
    """The singleton with the built-in tools in it. What a test adds to it, replaces in it or takes out is undone."""
    model_tools.default()
    singleton = registry_module.registry
    before = {entry.name: entry for entry in singleton.entries()}
    yield singleton
    for entry in singleton.entries():
        if before.get(entry.name) is not entry:
            singleton.deregister(entry.name)
    for entry in before.values():
        if singleton.get_entry(entry.name) is None:
            _register_again(singleton, entry)


@pytest.fixture
def default_hooks() -> Iterator[Callable[..., str]]:
    """`register_hook` of the default manager; the hooks are taken back afterwards."""
    names: list[str] = []

    def register_hook(*args: Any, **options: Any) -> str:
        names.append(hooks.register_hook(*args, **options))
        return names[-1]

    yield register_hook
    for name in names:
        hooks.unregister(name)


def _register_again(registry: ToolRegistry, entry: registry_module.ToolEntry) -> None:
    properties = entry._asdict()
    parameters = properties.pop("contract").schema()
    registry.register(schema={"parameters": parameters}, **properties)


def _busy_threads() -> list[str]:
    """Handrail's threads that do something. An idle worker waits in `work`, and ends by itself after a while; what takes the
    questions of a fork server waits in `receive`, and ends with that."""
    frames = sys._current_frames()
    busy = []
    for thread in threading.enumerate():
        if not thread.name.startswith("handrail-") or thread.ident not in frames:
            continue
        code = frames[thread.ident].f_code
        if (code.co_name, Path(code.co_filename).name) not in (("work", "workers.py"), ("receive", "wire.py")):
            busy.append(f"{thread.name} in {code.co_qualname}")
    return busy


def _lost_loops() -> list[str]:
    """Loops that run, or are open though their thread is gone. A living thread may keep one for the next call."""
    opened = [
        (loop, thread)
        for reference, thread in _loops
        # Modal's SDK keeps one in a thread of its own for as long as the process lives.
        if (loop := reference()) and not loop.is_closed() and not thread.name.endswith("(thread_inner)")
    ]
    return [f"{loop} of {thread.name}" for loop, thread in opened if loop.is_running() or not thread.is_alive()]
