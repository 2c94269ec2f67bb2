"""Which requests are accepted: checks of host, origin, credentials, role, rate and body size. Who sent what is audited."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ..base.loops import on_database
from ..base.rate_limit import RateLimit
from ..errors import StoreError
from .endpoint import HttpError
from .tokens import Audited, Keys, Role, Who

if TYPE_CHECKING:
    from starlette.requests import Request

log = logging.getLogger(__name__)
COOKIE = "handrail"
# Our page sends its key with every request. No other page has it, not even one of another port, which gets the cookie.
PAGE_KEY_HEADER = "x-handrail"
LOOPBACK = ("127.0.0.1", "localhost", "::1")
LOGIN_PATH = "/v1/login"
MAX_BODY_BYTES = 10 * 1024 * 1024
BODY_SECONDS = 30.0
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_MAX_FAILURES, _FAILURE_SECONDS = 20, 60.0
_MAX_REQUESTS, _REQUEST_SECONDS = 4_000, 10.0
_MAX_AUDITED_CHARS = 300


class WrongCredentials(HttpError):
    """Credentials were shown, and are not valid."""

    def __init__(self, message: str) -> None:
        super().__init__(401, "unauthorized", message)


class Guard:
    """`hosts` are the accepted Host headers, each with its port."""

    def __init__(self, keys: Keys, hosts: frozenset[str]) -> None:
        self.keys, self.hosts = keys, hosts
        self._failures = RateLimit(_MAX_FAILURES, _FAILURE_SECONDS, counts_refused=True)
        self._requests = RateLimit(_MAX_REQUESTS, _REQUEST_SECONDS, counts_refused=True)

    def check_origin(self, request: Request) -> None:
        """Rejects DNS rebinding and requests from other sites. Raises HttpError."""
        hosts = request.headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self.hosts:
            raise HttpError(421, "wrong_host", f"this server does not answer to {', '.join(hosts)[:100]!r}")
        origins = {urlsplit(origin).netloc.lower() for origin in request.headers.getlist("origin")}
        site = request.headers.get("sec-fetch-site", "same-origin")
        if origins - self.hosts or (site not in ("same-origin", "none") and request.method not in _SAFE):
            raise HttpError(403, "wrong_origin", "a page of another site must not do this")

    def admit(self, request: Request, role: Role | None) -> Who:
        """Who sends the request, if they may. Raises HttpError."""
        address = address_of(request)
        if role is None:
            if request.url.path != LOGIN_PATH:  # a right credential is let in, however many wrong ones come with it
                self._check_rate(address)
            return Who("", Role.WATCH)
        who = self._known(request, address)
        self._check_rate(f"{address} {who.name}")
        if who.role < role:
            raise HttpError(403, "role", f"this needs the role {role.word}; yours is {who.role.word}")
        return who

    def log_in(self, request: Request, *, token: str = "", code: str = "") -> Who:
        """The owner of a typed token, or whoever a link was made for. Raises HttpError, and counts the failure."""
        if code:
            otherwise = "this link was used or has expired; ask for another"
            return self._or_refuse(self.keys.use_link(code), address_of(request), otherwise)
        return self._or_refuse(self.keys.by_token(token.strip()), address_of(request), "unknown token")

    def audit(self, request: Request, who: Who | None, status: int, detail: str = "") -> None:
        """Store a request that was refused, or a login, which can do nothing that is not audited."""
        record = _audited(request, who, status, detail)
        try:
            self.keys.note(record)
        except StoreError as error:
            log.error("%s by %s (%d) could not be audited: %s", record.action, record.who, status, error)  # noqa: TRY400  the traceback says no more

    async def audit_begin(self, request: Request, who: Who | None, detail: str) -> int:
        """The number of the entry of a request that has begun. Raises StoreError."""
        return await on_database(self.keys.note, _audited(request, who, 0, detail))

    async def audit_end(self, entry: int, status: int) -> None:
        try:
            await on_database(self.keys.settle, entry, status)
        except StoreError as error:  # the action is done and was audited; its caller gets the result
            log.error("how the audited request %d ended (%d) could not be stored: %s", entry, status, error)  # noqa: TRY400  the traceback says no more

    def _known(self, request: Request, address: str) -> Who:
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        cookie, page_key = request.cookies.get(COOKIE, ""), request.headers.get(PAGE_KEY_HEADER, "")
        how = "a token is needed: `Authorization: Bearer TOKEN`, or log in at /"
        if not kind and not (cookie and page_key):
            self._check_rate(address)
            raise HttpError(401, "unauthorized", how)
        if kind:
            who = self.keys.by_token(token.strip()) if kind.lower() == "bearer" and token else None
        else:
            who = self.keys.logins.find(cookie, page_key)
        return self._or_refuse(who, address, how)

    def _or_refuse(self, who: Who | None, address: str, otherwise: str) -> Who:
        """A right credential always counts: an agent has its user's address, and must not lock them out by guessing."""
        if who is not None:
            return who
        if not self._failures.allows(address):
            raise HttpError(429, "too_often", "too many wrong tokens; wait a minute")
        raise WrongCredentials(otherwise)

    def _check_rate(self, key: str) -> None:
        if not self._requests.allows(key):
            raise HttpError(429, "too_often", "too many requests; wait a few seconds")


def address_of(request: Request) -> str:
    return request.client.host if request.client else ""


def _audited(request: Request, who: Who | None, status: int, detail: str) -> Audited:
    action = f"{request.method} {request.url.path}"[:_MAX_AUDITED_CHARS]
    name, role = (who.name, who.role.word) if who is not None else ("", "")
    return Audited(time.time(), name, role, address_of(request), action, detail[:_MAX_AUDITED_CHARS], status)


async def read_body(request: Request) -> bytes:
    """The whole body. Raises HttpError if it is too long, too slow, or incomplete."""
    from starlette.requests import ClientDisconnect

    length = request.headers.get("content-length", "0")
    if not length.isdigit() or int(length) > MAX_BODY_BYTES:
        raise HttpError(413, "too_long", f"a body may have {MAX_BODY_BYTES:,} bytes")
    data = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for piece in request.stream():
                data += piece
                if len(data) > MAX_BODY_BYTES:
                    raise HttpError(413, "too_long", f"a body may have {MAX_BODY_BYTES:,} bytes")
    except ClientDisconnect:
        raise HttpError(400, "broken_off", "the body is incomplete") from None
    except TimeoutError:
        raise HttpError(408, "too_slow", "the body took too long") from None
    return bytes(data)


def allowed_hosts(host: str, port: int, more: tuple[str, ...] = ()) -> frozenset[str]:
    """The Host headers of this server: with the port and, if it is the default port, without."""
    names = {*(LOOPBACK if host in LOOPBACK else (host, *LOOPBACK)), *more}
    bracketed = {f"[{name}]" if ":" in name and not name.startswith("[") else name for name in names}
    bare = {name for name in bracketed if name.endswith("]") or not name.rpartition(":")[2].isdigit()}
    with_port = bracketed - bare | {f"{name}:{port}" for name in bare}
    return frozenset(name.lower() for name in (with_port | bracketed if port in (80, 443) else with_port | set(more)))
