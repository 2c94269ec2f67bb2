"""How a browser logs in: with a token that is typed once, or by a link that works once."""

from __future__ import annotations

import asyncio

from starlette.responses import RedirectResponse, Response

from ...types import JsonDict
from ..access_control import COOKIE
from ..endpoint import Endpoint, HttpError, RequestContext, as_response
from ..roles import Role, Who
from ..tokens import LOGIN_SECONDS
from .shapes import NUMBER, TEXT, bounded, many, maybe, record

_ROLES = {"type": "string", "enum": [role.word for role in Role]}


async def log_in(context: RequestContext) -> Response:
    """Log this browser in with a token."""
    guard = context.request.app.state.guard
    who = guard.by_typed_token(context.request, context.body["token"])
    return await _logged_in(context, who, as_response({"name": who.name, "role": who.role.word}))


async def follow_link(context: RequestContext) -> Response:
    """Log this browser in by a link that works once, and show the console."""
    keys = context.served.keys
    who = keys.use_link(context.query["code"])
    if who is None:
        already_in = await asyncio.to_thread(keys.by_cookie, context.request.cookies.get(COOKIE, ""))
        if already_in is None:
            raise HttpError(401, "unauthorized", "this link was used or has expired; ask for another")
        return RedirectResponse("/", 303)
    return await _logged_in(context, who, RedirectResponse("/", 303))


async def _logged_in(context: RequestContext, who: Who, response: Response) -> Response:
    value = await asyncio.to_thread(context.served.keys.log_in, who)
    secure = context.request.url.scheme == "https"
    response.set_cookie(COOKIE, value, max_age=LOGIN_SECONDS, httponly=True, samesite="strict", secure=secure, path="/")
    return response


async def log_out(context: RequestContext) -> Response:
    """Log this browser out."""
    value = context.request.cookies.get(COOKIE, "")
    if value:
        await asyncio.to_thread(context.served.keys.log_out, value)
    response = as_response({"ok": True})
    response.delete_cookie(COOKIE, path="/")
    return response


async def new_link(context: RequestContext) -> JsonDict:
    """A link that logs in one other browser, once, with the given role."""
    role = Role.named(context.body["role"])
    code = context.served.keys.new_link(Who(f"link by {context.who.name}", role))
    base = str(context.request.base_url).rstrip("/")
    return {"url": f"{base}/login?code={code}"}


async def tokens(context: RequestContext) -> JsonDict:
    """The names and roles of all tokens, without their values."""
    found = await asyncio.to_thread(context.served.keys.tokens)
    return {"tokens": [{**each._asdict(), "role": each.role.word} for each in found]}


async def new_token(context: RequestContext) -> JsonDict:
    """Create a token. It is shown only in this answer."""
    body = context.body
    token = await asyncio.to_thread(context.served.keys.new_token, body["name"], Role.named(body["role"]))
    return {"token": token}


async def revoke_token(context: RequestContext) -> JsonDict:
    """Revoke a token, and log out every browser that used it."""
    if not await asyncio.to_thread(context.served.keys.revoke, context.path["name"]):
        raise HttpError(404, "not_found", f"there is no token {context.path['name']!r}")
    return {"ok": True}


_NAME = bounded(100, minLength=1)
_OK = record(ok={"type": "boolean"})
_TOKEN = record(name=TEXT, role=_ROLES, created=NUMBER, used=maybe(NUMBER))

ENDPOINTS = (
    Endpoint(
        "POST", "/v1/login", log_in, role=None, body=record(token=bounded(1000)), answer=record(name=TEXT, role=_ROLES)
    ),
    Endpoint(
        "GET",
        "/login",
        follow_link,
        role=None,
        query={"code": bounded(200, **{"x-required": True})},
        media="text/html",
        status=303,
    ),
    Endpoint("POST", "/v1/logout", log_out, answer=_OK),
    Endpoint("POST", "/v1/links", new_link, role=Role.OPERATE, body=record(role=_ROLES), answer=record(url=TEXT)),
    Endpoint("GET", "/v1/tokens", tokens, role=Role.OPERATE, answer=record(tokens=many(_TOKEN))),
    Endpoint(
        "POST",
        "/v1/tokens",
        new_token,
        role=Role.OPERATE,
        body=record(name=_NAME, role=_ROLES),
        answer=record(token=TEXT),
    ),
    Endpoint("DELETE", "/v1/tokens/{name}", revoke_token, role=Role.OPERATE, answer=_OK),
)
