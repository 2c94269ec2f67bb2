"""How a browser logs in, with a token that is typed once or by a link that works once; who is logged in; tokens."""

import asyncio

from starlette.responses import Response

from ...types import JsonDict
from ..access_control import COOKIE, LOGIN_PATH, address_of
from ..endpoint import Endpoint, HttpError, RequestContext, as_response
from ..tokens import LOGIN_SECONDS, Role, Who, view_of
from .shapes import FLAG, NUMBER, OK, ROLE, TEXT, bounded, many, maybe, record

_TOKEN = record(name=TEXT, role=ROLE, created=NUMBER, used=maybe(NUMBER))
_FACTS = {"created": NUMBER, "used": NUMBER, "address": TEXT, "agent": TEXT, "is_this_one": FLAG}
_LOGIN = record(id=TEXT, name=TEXT, role=ROLE, **_FACTS)
_LOGGED_IN = record(name=TEXT, role=ROLE, page_key=TEXT)
# One of the two.
_SHOWN = {**record((), token=bounded(1000), code=bounded(200)), "minProperties": 1, "maxProperties": 1}
_NEW_TOKEN = record(name=bounded(100, minLength=1), role=ROLE)


def _how(context: RequestContext) -> str:
    return "with a token" if "token" in context.body else "by a link"


def _named(context: RequestContext) -> str:
    return " ".join(str(context.body[name]) for name in ("name", "role") if name in context.body)


@Endpoint("POST", LOGIN_PATH, _LOGGED_IN, role=None, body=_SHOWN, detail=_how)
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
    response.set_cookie(COOKIE, made.cookie, max_age=LOGIN_SECONDS, httponly=True, samesite="strict", secure=secure)
    return response


@Endpoint("POST", "/v1/logout", OK)
def log_out(context: RequestContext) -> Response:
    """Log this browser out."""
    if context.who.login:
        context.served.keys.logins.end(context.who.login)
    response = as_response({"ok": True})
    response.delete_cookie(COOKIE, path="/")
    return response


@Endpoint("GET", "/v1/logins", record(logins=many(_LOGIN)))
def logins(context: RequestContext) -> JsonDict:
    """The browsers that are logged in. Without the role operate, only your own."""
    found, who = context.served.keys.logins.all(), context.who
    shown = [each for each in found if who.role is Role.OPERATE or each.id == who.login]
    return {"logins": [{**view_of(each), "is_this_one": each.id == who.login} for each in shown]}


@Endpoint("DELETE", "/v1/logins/{id}", OK, role=Role.OPERATE)
def end_login(context: RequestContext) -> JsonDict:
    """Log a browser out."""
    if not context.served.keys.logins.end(context.path["id"]):
        raise HttpError(404, "not_found", f"there is no login {context.path['id'][:100]!r}")
    return {"ok": True}


@Endpoint("POST", "/v1/links", record(url=TEXT), role=Role.OPERATE, body=record(role=ROLE), detail=_named)
async def new_link(context: RequestContext) -> JsonDict:
    """A link that logs in one other browser, once, with the given role."""
    role = Role.named(context.body["role"])
    name = f"link by {context.who.name.removeprefix('link by ')}"
    code = context.served.keys.new_link(Who(name, role, context.who.credential))
    base = str(context.request.base_url).rstrip("/")
    return {"url": f"{base}/login?code={code}"}


@Endpoint("GET", "/v1/tokens", record(tokens=many(_TOKEN)), role=Role.OPERATE)
def tokens(context: RequestContext) -> JsonDict:
    """The names and roles of all tokens, without their values."""
    return {"tokens": [*map(view_of, context.served.keys.tokens())]}


@Endpoint("POST", "/v1/tokens", record(token=TEXT), role=Role.OPERATE, body=_NEW_TOKEN, detail=_named)
def new_token(context: RequestContext) -> JsonDict:
    """Create a token. It is shown only in this answer."""
    return {"token": context.served.keys.new_token(context.body["name"], Role.named(context.body["role"]))}


@Endpoint("DELETE", "/v1/tokens/{name}", OK, role=Role.OPERATE)
def revoke_token(context: RequestContext) -> JsonDict:
    """Revoke a token, and log out every browser that came in by it or by a link made with it."""
    if not context.served.keys.revoke(context.path["name"]):
        raise HttpError(404, "not_found", f"there is no token {context.path['name']!r}")
    return {"ok": True}
