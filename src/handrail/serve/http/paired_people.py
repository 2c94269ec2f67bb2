"""Users of the chat gateway: pairing codes, paired users, and removing them."""

from contextlib import closing

from ...config.paths import state_dir
from ...types import JsonDict
from ..endpoint import Endpoint, HttpError, RequestContext, Role
from ..gateway.store import CODE_SECONDS, STORE_NAME, GatewayStore
from .shapes import NUMBER, TEXT, many, record

_PEOPLE = record(people=many(record(account=TEXT, person=TEXT, paired_at=NUMBER)))


def _opened() -> closing[GatewayStore]:
    return closing(GatewayStore(state_dir() / STORE_NAME))


@Endpoint("GET", "/v1/people", _PEOPLE)
def people(_: RequestContext) -> JsonDict:
    """The paired users."""
    with _opened() as store:
        found = store.people()
    return {"people": [{"account": each.adapter, "person": each.person, "paired_at": each.paired} for each in found]}


@Endpoint("POST", "/v1/people/codes", record(code=TEXT, seconds=NUMBER), role=Role.OPERATE)
def new_code(_: RequestContext) -> JsonDict:
    """A pairing code, which a user sends to the agent's account in a chat. It works once, within a few minutes."""
    with _opened() as store:
        return {"code": store.new_code(), "seconds": CODE_SECONDS}


@Endpoint("DELETE", "/v1/people/{account}/{person:path}", record(removed=TEXT), role=Role.OPERATE)
def remove(context: RequestContext) -> JsonDict:
    """Unpair a user."""
    with _opened() as store:
        if not store.unpair(context.path["account"], context.path["person"]):
            raise HttpError(404, "not_found", "no such user is paired")
    return {"removed": context.path["person"]}
