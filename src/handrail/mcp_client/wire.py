"""Requests straight to a server's pipe from any thread, and their answers straight to whoever waits.

The SDK's session stays in charge of the talk. A call of a tool goes past it, because on its way through the session it is
validated, copied and handed from task to task several times, which costs more than all that we do around a call.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from .hops import Mailbox, mailbox_of

if TYPE_CHECKING:
    from ..types import JsonDict
    from .pipe import Pipe

# The session counts its own requests from 1.
_FIRST_NUMBER = 1_000_000_000
_STAMP = "io.modelcontextprotocol/"


class Lost(Exception):
    """The server went before it answered."""


class Refused(Exception):
    """The server answered with an error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Wire:
    """The requests under way to one server. `take` and `close` are called on the thread of the server's loop."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe
        self._numbers = itertools.count(_FIRST_NUMBER)
        self._waiting: dict[int, Request] = {}
        self._lock = threading.Lock()
        self._is_closed = False
        # What the session puts on every request of its own, by which the newer revisions know the client.
        self._stamp: JsonDict | None = None

    @property
    def in_flight(self) -> int:
        return len(self._waiting)

    def learn(self, request: Any) -> None:
        """From a request of the session's own."""
        meta = (request.params or {}).get("_meta") or {}
        self._stamp = {name: value for name, value in meta.items() if name.startswith(_STAMP)}

    def begin(self, method: str, params: JsonDict) -> Request | None:
        """None: not this way now. Nothing was sent then."""
        if self._stamp is None or self._pipe.is_blocked:
            return None
        request = Request(self, next(self._numbers))
        body = {**params, "_meta": self._stamp} if self._stamp else params
        try:
            line = _line({"jsonrpc": "2.0", "id": request.number, "method": method, "params": body})
        except (ValueError, TypeError):  # no JSON; the session knows what to make of it
            return None
        with self._lock:
            if self._is_closed:
                return None
            self._waiting[request.number] = request
        try:
            self._pipe.send(line)
        except OSError:
            self._settle(request.number, Lost())
        return request

    def take(self, message: Any) -> bool:
        """Whether it was the answer to a request of ours."""
        if type(message) is not dict or "method" in message:
            return False
        number = message.get("id")
        if type(number) is str and number.isdecimal() and number.isascii():  # some give it back as a text
            number = int(number)
        return type(number) is int and self._settle(number, _outcome(message))

    def refuse(self, *, if_idle: bool = False) -> bool:
        """Begin no more from now on; with `if_idle` only when none is under way. Whether that is so now."""
        with self._lock:
            self._is_closed = self._is_closed or not (if_idle and self._waiting)
            return self._is_closed

    def close(self) -> None:
        """Begin no more, and tell those who wait."""
        self.refuse()
        for number in list(self._waiting):
            self._settle(number, Lost())

    def abandon(self, number: int, reason: str) -> None:
        """Nobody waits any more; the server is told so."""
        if self._settle(number, asyncio.CancelledError()):
            params = {"requestId": number, "reason": reason}
            line = _line({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
            try:
                self._pipe.send(line)
            except OSError:
                return

    def _settle(self, number: int, outcome: JsonDict | BaseException) -> bool:
        """Whoever takes it out of the table settles it, so that it is settled once."""
        request = self._waiting.pop(number, None)
        if request is None:
            return False
        request.outcome = outcome
        request.ready()
        return True


class Request:
    """One request under way: waited for by the thread, or in the loop, that made it. Any thread may cancel it."""

    __slots__ = ("_wait", "_wire", "number", "outcome", "ready")

    def __init__(self, wire: Wire, number: int) -> None:
        self._wire, self.number = wire, number
        self.outcome: JsonDict | BaseException = Lost()
        self.ready: Callable[[], object]
        self._wait: Any
        loop = asyncio._get_running_loop()
        if loop is None:
            self._wait = threading.Lock()
            self._wait.acquire()
            self.ready = self._wait.release
        else:
            self._wait = loop.create_future()
            self.ready = partial(_wake, self._wait, mailbox_of(loop))

    def wait(self, seconds: float) -> JsonDict:
        """The result. Raises TimeoutError, Refused, Lost, or CancelledError."""
        try:
            if not self._wait.acquire(timeout=seconds):
                raise TimeoutError
        except BaseException:  # also Ctrl-C
            self._wire.abandon(self.number, "nobody waits any more")
            raise
        return self._result()

    async def awaited(self, seconds: float) -> JsonDict:
        box = mailbox_of(asyncio.get_running_loop())
        box.waiting += 1
        try:
            async with asyncio.timeout(seconds):
                await self._wait
        except BaseException:
            self._wire.abandon(self.number, "nobody waits any more")
            raise
        finally:
            box.waiting -= 1
        return self._result()

    def cancel(self) -> None:
        self._wire.abandon(self.number, "cancelled by the caller")

    def _result(self) -> JsonDict:
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return self.outcome


def _wake(future: asyncio.Future[None], box: Mailbox) -> None:
    """Make a future of another loop done, from any thread."""
    post = box.post if asyncio._get_running_loop() is None else box.post_soon
    post(lambda: None if future.done() else future.set_result(None))


_encoded = json.JSONEncoder(separators=(",", ":"), allow_nan=False, check_circular=False).encode


def _line(message: JsonDict) -> bytes:
    return _encoded(message).encode() + b"\n"


def _outcome(message: JsonDict) -> JsonDict | BaseException:
    result, error = message.get("result"), message.get("error")
    if isinstance(result, dict) and error is None:
        return result
    if isinstance(error, dict) and type(error.get("code")) is int:
        return Refused(error["code"], str(error.get("message", "")))
    return Refused(-32603, "the server's answer cannot be read as JSON-RPC")
