"""Look after one service for as long as somebody uses it: `python -m tests.services.caretaker PLAN`.

A user of the service holds a connection to its caretaker, so the kernel does the counting, and a killed user counts as one
who left. The first connection starts the service, the end of the last one stops it. If the caretaker itself is killed, its
namespaces end with it; the files that are left then are removed by the next caretaker on this machine.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import select
import signal
import socket
import sys
import traceback
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from . import leftovers, places, seclusion

_FIRST_TENANT_SECONDS = 10.0


class Service(Protocol):
    """What is looked after."""

    # The methods that a tenant may call.
    orders: frozenset[str]

    def start(self) -> dict[str, Any]:
        """What the tenants are told."""

    def stop(self) -> None: ...


@dataclass(frozen=True)
class Plan:
    """Which service, and how. `service` is `module:class` below this package; `options` are given to the class."""

    folder: str
    service: str
    options: dict[str, Any]
    own_network: bool
    outer_processes: str
    started_fd: int

    def to_json(self) -> str:
        return json.dumps(asdict(self))


class Caretaker:
    def __init__(self, plan: Plan, listener: socket.socket) -> None:
        self._plan, self._listener = plan, listener
        self._folder = Path(plan.folder)
        self._tenants: list[socket.socket] = []

    def work(self) -> None:
        if not self._readable([self._listener], _FIRST_TENANT_SECONDS):
            return
        try:
            self._prepare()
            # A tenant who comes while the service is being stopped gets it started again.
            while self._readable([self._listener], 0):
                self._run()
        except Exception:  # whatever goes wrong, the tenants are told
            self._tell_all({"error": traceback.format_exc()})

    def _prepare(self) -> None:
        seclusion.keep_writes_private()
        if self._plan.own_network:
            seclusion.leave_network()

    def _run(self) -> None:
        self._folder.mkdir(mode=0o755, exist_ok=True)
        try:
            with contextlib.ExitStack() as stack:
                service = self._make()
                stack.callback(service.stop)
                self._serve(service, {"result": service.start()})
        except Exception:  # whatever goes wrong, the tenants are told
            self._tell_all({"error": traceback.format_exc()})
        finally:
            self._clean()
            self._dismiss()

    def _serve(self, service: Service, welcome: dict[str, Any]) -> None:
        self._accept(welcome)
        while True:
            for ready in self._readable([self._listener, *self._tenants], None):
                if ready is self._listener:
                    self._accept(welcome)
                elif (order := _receive(ready)) is not None:
                    _send(ready, _obey(service, order))
                elif len(self._tenants) == 1:
                    return  # The last one waits for the end.
                else:
                    self._tenants.remove(ready)
                    ready.close()

    def _accept(self, welcome: dict[str, Any]) -> None:
        while self._readable([self._listener], 0):
            tenant, _ = self._listener.accept()
            self._tenants.append(tenant)
            _send(tenant, welcome)

    def _tell_all(self, message: dict[str, Any]) -> None:
        for tenant in self._tenants:
            _send(tenant, message)
        self._accept(message)

    def _clean(self) -> None:
        if seclusion.process_namespace() != self._plan.outer_processes:
            seclusion.end_others()
        leftovers.remove(self._folder)

    def _dismiss(self) -> None:
        for tenant in self._tenants:
            _send(tenant, {"result": "stopped"})
            tenant.close()
        self._tenants.clear()

    def _make(self) -> Service:
        module, _, name = self._plan.service.partition(":")
        made: Service = getattr(importlib.import_module(f"{__package__}.{module}"), name)(
            self._folder, **self._plan.options
        )
        return made

    def _readable(self, sockets: list[socket.socket], seconds: float | None) -> list[socket.socket]:
        return select.select(sockets, [], [], seconds)[0]


def _obey(service: Service, order: dict[str, Any]) -> dict[str, Any]:
    if order["name"] not in service.orders:
        return {"error": f"unknown order {order['name']!r}; known: {', '.join(sorted(service.orders))}"}
    try:
        return {"result": getattr(service, order["name"])(**order["arguments"])}
    except Exception:
        return {"error": traceback.format_exc()}


def _receive(tenant: socket.socket) -> dict[str, Any] | None:
    """One order; none when the tenant left, or was killed. Orders are short: one fits into one read."""
    try:
        line = tenant.recv(1 << 16)
    except OSError:
        return None
    return json.loads(line) if line else None


def _send(tenant: socket.socket, message: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):
        tenant.sendall(json.dumps(message).encode() + b"\n")


def main() -> None:
    if os.getpid() == 1:
        seclusion.be_process_one()
    plan = Plan(**json.loads(sys.argv[1]))
    listener = places.claim(Path(plan.folder))
    if listener is None:
        return
    listener.listen(128)
    os.write(plan.started_fd, b"+")
    os.close(plan.started_fd)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    Caretaker(plan, listener).work()


if __name__ == "__main__":
    main()
