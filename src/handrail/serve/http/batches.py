"""Batches that this home has run: how far they are, what failed, and stopping one."""

from collections import Counter
from pathlib import Path

from ...batch.folder import Options, failures, known, request_stop, status
from ...errors import HandrailError
from ...types import JsonDict
from ..endpoint import Endpoint, HttpError, RequestContext
from ..tokens import Role
from .shapes import FLAG, NUMBER, TEXT, WHOLE, count, loose, many, maybe, record

_FIGURES = ("waiting", "running", "done", "failed", "tokens", "seconds", "per_second", "cost", "eta", "mean_reward")
_TEXTS = dict.fromkeys(("id", "folder", "engine", "state", "problem"), TEXT)
_BATCH = loose(**_TEXTS, questions=WHOLE, **dict.fromkeys(_FIGURES, maybe(NUMBER)))
_FAILURE = record(id=TEXT, attempt=WHOLE, worker=TEXT, error=TEXT)
_WHOLE = record(batch=_BATCH, failures=many(_FAILURE))


@Endpoint("GET", "/v1/batches", record(batches=many(_BATCH)), limit=count(100, 1000))
def batches(context: RequestContext) -> JsonDict:
    """The batches that were run, the newest first. A `problem` says why one cannot be read."""
    asked, found = _asked(context), known(context.served.app.config.home)
    return {"batches": [_view(out, options, asked) for out, options in found][: context.query["limit"]]}


@Endpoint("GET", "/v1/batches/{id}", _WHOLE, limit=count(200, 10_000))
def batch(context: RequestContext) -> JsonDict:
    """One batch, with the tasks that failed for good."""
    out, options = _of(context)
    failed = failures(out, options, context.query["limit"])
    return {"batch": _view(out, options, _asked(context)), "failures": failed}


@Endpoint("POST", "/v1/batches/{id}/stop", record(stopped=FLAG), role=Role.OPERATE)
def stop(context: RequestContext) -> JsonDict:
    """Stop a batch: within seconds no command of it runs any more. `handrail batch resume` goes on with it."""
    return {"stopped": request_stop(*_of(context))}


def _view(out: Path, options: Options, asked: Counter[str]) -> JsonDict:
    about = {"id": options.run, "folder": str(out), "engine": options.engine, "questions": asked[options.run]}
    try:
        found = status(out, options)
    except HandrailError as error:
        return {**about, "state": "unreadable", "problem": str(error), **dict.fromkeys(_FIGURES)}
    # The ledger may be in a folder where agents write.
    numbers = {name: value for name, value in found.items() if isinstance(value, (int, float))}
    return {**about, "state": found["state"], "problem": "", **{name: numbers.get(name) for name in _FIGURES}}


def _asked(context: RequestContext) -> Counter[str]:
    """How many questions each batch has open. Its sessions are called batch-RUN-TASK."""
    sessions = (each.request.session_id or "" for each in context.served.approvals.pending())
    return Counter(each.split("-")[1] for each in sessions if each.startswith("batch-"))


def _of(context: RequestContext) -> tuple[Path, Options]:
    for out, options in known(context.served.app.config.home):
        if options.run == context.path["id"]:
            return out, options
    raise HttpError(404, "not_found", "there is no such batch; a batch whose folder is gone is not known any more")
