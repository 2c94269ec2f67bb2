"""How a browser logs in, with a token that is typed once or by a link that works once; who is logged in; tokens."""

from __future__ import annotations

import asyncio

from starlette.responses import Response

from ...types import JsonDict
from ..access_control import COOKIE, LOGIN_PATH, address_of
from ..endpoint import Endpoint, HttpError, RequestContext, as_response
from ..tokens import LOGIN_SECONDS, Role, Who
from .shapes import FLAG, NUMBER, TEXT, bounded, many, maybe, record

_ROLES = {"type": "string", "enum": [role.word for role in Role]}


async def log_in(context: RequestContext) -> Response:
    """Log this browser in with a token, or with the code of a link. The answer has the key that its page must send."""
    request, body = context.request, context.body
    guard, logins = request.app.state.guard, context.served.keys.logins
    who = guard.log_in(request, token=body.get("token", ""), code=body.get("code", ""))
    agent = request.headers.get("user-agent", "")
    made = await asyncio.to_thread(logins.add, who, address=address_of(request), agent=agent)
    request.state.logged_in = who  # for the audit
    response = as_response({"name": who.name, "role": who.role.word, "page_key": made.page_key})
    secure = request.url.scheme == "https"
    response.set_cookie(
        COOKIE, made.cookie, max_age=LOGIN_SECONDS, httponly=True, samesite="strict", secure=secure, path="/"
    )
    return response


async def log_out(context: RequestContext) -> Response:
    """Log this browser out."""
    if context.who.login:
        await asyncio.to_thread(context.served.keys.logins.end, context.who.login)
    response = as_response({"ok": True})
    response.delete_cookie(COOKIE, path="/")
    return response


async def logins(context: RequestContext) -> JsonDict:
    """The browsers that are logged in. Without the role operate, only your own."""
    found = await asyncio.to_thread(context.served.keys.logins.all)
    who = context.who
    shown = [each for each in found if who.role is Role.OPERATE or each.id == who.login]
    return {
        "logins": [{**each._asdict(), "role": each.role.word, "is_this_one": each.id == who.login} for each in shown]
    }


async def end_login(context: RequestContext) -> JsonDict:
    """Log a browser out."""
    if not await asyncio.to_thread(context.served.keys.logins.end, context.path["id"]):
        raise HttpError(404, "not_found", f"there is no login {context.path['id'][:100]!r}")
    return {"ok": True}


async def new_link(context: RequestContext) -> JsonDict:
    """A link that logs in one other browser, once, with the given role."""
    role = Role.named(context.body["role"])
    name = f"link by {context.who.name.removeprefix('link by ')}"
    code = context.served.keys.new_link(Who(name, role, context.who.credential))
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
    """Revoke a token, and log out every browser that came in by it or by a link made with it."""
    if not await asyncio.to_thread(context.served.keys.revoke, context.path["name"]):
        raise HttpError(404, "not_found", f"there is no token {context.path['name']!r}")
    return {"ok": True}


_NAME = bounded(100, minLength=1)
_OK = record(ok={"type": "boolean"})
_TOKEN = record(name=TEXT, role=_ROLES, created=NUMBER, used=maybe(NUMBER))

_LOGIN = record(
    id=TEXT, name=TEXT, role=_ROLES, created=NUMBER, used=NUMBER, address=TEXT, agent=TEXT, is_this_one=FLAG
)
# One of the two.
_SHOWN = {**record((), token=bounded(1000), code=bounded(200)), "minProperties": 1, "maxProperties": 1}


def _named(context: RequestContext) -> str:
    return " ".join(str(context.body[name]) for name in ("name", "role") if name in context.body)


ENDPOINTS = (
    Endpoint(
        "POST",
        LOGIN_PATH,
        log_in,
        role=None,
        body=_SHOWN,
        answer=record(name=TEXT, role=_ROLES, page_key=TEXT),
        detail=lambda context: "with a token" if "token" in context.body else "by a link",
    ),
    Endpoint("POST", "/v1/logout", log_out, answer=_OK),
    Endpoint("GET", "/v1/logins", logins, answer=record(logins=many(_LOGIN))),
    Endpoint("DELETE", "/v1/logins/{id}", end_login, role=Role.OPERATE, answer=_OK),
    Endpoint(
        "POST",
        "/v1/links",
        new_link,
        role=Role.OPERATE,
        body=record(role=_ROLES),
        answer=record(url=TEXT),
        detail=_named,
    ),
    Endpoint("GET", "/v1/tokens", tokens, role=Role.OPERATE, answer=record(tokens=many(_TOKEN))),
    Endpoint(
        "POST",
        "/v1/tokens",
        new_token,
        role=Role.OPERATE,
        body=record(name=_NAME, role=_ROLES),
        answer=record(token=TEXT),
        detail=_named,
    ),
    Endpoint("DELETE", "/v1/tokens/{name}", revoke_token, role=Role.OPERATE, answer=_OK),
)
