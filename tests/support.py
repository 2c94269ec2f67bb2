"""Short ways to say what tests say often."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shlex
import shutil
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import filelock
import pytest

from handrail.config.paths import Source, find_plugins
from handrail.config.store import Confirmed, read_config
from handrail.config.trust import TRUST_FILE, Trust
from handrail.core.registry import ToolRegistry
from handrail.plugins.loader import trust_plugin

# How long a test waits for what should come at once: long enough for a slow machine that is busy with other things. What hangs
# in a test hangs for as long.
PATIENCE_SECONDS = 60.0

# This Python in a line for a shell, wherever it lies.
PYTHON = shlex.quote(sys.executable)


def configure(home: Path, text: str) -> None:
    """Write the configuration as a person does with `handrail config edit`: it holds, also where it became weaker."""
    path = home / "config.yaml"
    path.write_text(text)
    Confirmed(home / "state").confirm(path, read_config(path))


def trust_plugins(home: Path) -> None:
    """What a person at a terminal says yes to: the plugins in a home."""
    for found in find_plugins(home=str(home)):
        if found.source is not Source.PROJECT:
            trust_plugin(found, Trust(home / "state" / TRUST_FILE))


def echo(args: dict[str, Any], **_: Any) -> str:
    return json.dumps({"got": args})


def parameters(required: Sequence[str] = (), **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


def add(
    registry: ToolRegistry,
    name: str = "tool",
    handler: Callable[..., Any] = echo,
    *,
    toolset: str = "test",
    description: str = "A tool.",
    schema: dict[str, Any] | None = None,
    **more: Any,
) -> bool:
    """Register a tool of which only the interesting parts are given; `schema` is its parameters."""
    function = {"description": description, "parameters": parameters() if schema is None else schema}
    return registry.register(name=name, toolset=toolset, schema=function, handler=handler, **more)


def call(name: str, /, call_id: str = "", **arguments: Any) -> dict[str, Any]:
    """One entry of an OpenAI message's `tool_calls`."""
    return {"id": call_id or name, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


def strict_loads(text: str) -> Any:
    """JSON as the standard has it: encodable, and without NaN."""

    def refuse(constant: str) -> Any:
        raise AssertionError(f"{constant} is not JSON")

    assert isinstance(text, str)
    return json.loads(text.encode(), parse_constant=refuse)


def error_in(outcome: Any) -> dict[str, Any]:
    """The error that an outcome reports: it is well-formed, typed and has a text."""
    parsed = strict_loads(outcome)
    assert isinstance(parsed, dict), outcome
    assert isinstance(parsed.get("error"), str), outcome
    assert parsed["error"], outcome
    assert isinstance(parsed.get("error_type"), str), outcome
    return parsed


def wait_until(
    condition: Callable[[], object], *, timeout: float = PATIENCE_SECONDS, otherwise: Callable[[], str] | None = None
) -> None:
    start = time.monotonic()
    end = start + timeout
    tick = threading.Event()
    while True:
        asked = time.monotonic()
        if condition():
            return
        if (now := time.monotonic()) > end:
            raise AssertionError(otherwise() if otherwise else "the condition never came true")
        # What takes long to ask, such as a container engine, or long to come is asked less often: others need the machine. On a
        # busy one a wait is long, and to ask all the while would make it busier.
        tick.wait(min(max(0.002, 3 * (now - asked), (now - start) / 8), 1.0))


def in_threads(count: int, work: Callable[[int], Any]) -> list[Any]:
    """What `work(0)` … `work(count - 1)` gave back, all of them started at the same moment. Raises what one raised."""
    start = threading.Barrier(count)
    answers: list[Any] = [None] * count
    problems: list[BaseException] = []

    def run(index: int) -> None:
        try:
            start.wait(PATIENCE_SECONDS)
            answers[index] = work(index)
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=run, args=(index,), daemon=True) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_SECONDS * 2)
        assert not thread.is_alive(), "a thread never ended"
    while problems:
        raise problems.pop()  # taken out, so that it does not keep its own thread's frames alive in a ring
    return answers


def in_thread(work: Callable[[], Any]) -> Any:
    return in_threads(1, lambda _: work())[0]


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """A folder that all workers of a run share: `make` fills it for the first that asks, and the others wait for that."""
    own = factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / name
    with filelock.FileLock(f"{folder}.lock"):
        if not Path(f"{folder}.made").exists():
            shutil.rmtree(folder, ignore_errors=True)  # of one that failed
            folder.mkdir()
            make(folder)
            Path(f"{folder}.made").touch()
    return folder


def free_port() -> int:
    """A port of loopback for a server that is told its port. The kernel gives none of these to whoever connects meanwhile."""
    end = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    for port in random.SystemRandom().sample(range(end // 2, end), 100):
        with socket.socket() as found, contextlib.suppress(OSError):
            found.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")


@contextlib.contextmanager
def costs_less_than(seconds: float) -> Iterator[None]:
    """Of this process's computing time, which other programs on the machine do not lengthen."""
    start = time.process_time()
    yield
    elapsed = time.process_time() - start
    assert elapsed < seconds, f"cost {elapsed:.2f} s, not less than {seconds:g} s"


@contextlib.contextmanager
def uses_less_memory_than(size: int) -> Iterator[None]:
    """The bytes by which this process grows at its largest. The kernel counts them for nothing; to trace every allocation
    would take several times as long as what is measured."""
    Path("/proc/self/clear_refs").write_text("5")  # from here on the peak is counted anew
    before = _kilobytes("VmRSS")
    yield
    grown = (_kilobytes("VmHWM") - before) * 1024
    assert grown < size, f"grew by {grown} bytes, not less than {size}"


def _kilobytes(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field))


@contextlib.contextmanager
def takes_less_than(seconds: float) -> Iterator[None]:
    """It does not wait for what hangs. How soon exactly it ends is for `make bench`: here the machine may be busy."""
    start = time.perf_counter()
    yield
    elapsed = time.perf_counter() - start
    assert elapsed < seconds, f"took {elapsed:.2f} s, not less than {seconds:g} s"
