"""Keep results within what the model's context can bear: the whole goes to the store, head and tail to the model."""

import json
import logging
import re
from typing import Any

from ..core.outcome import Outcome, refuse_constant, to_json
from ..protocols import ResultStore
from ..types import JsonDict

log = logging.getLogger(__name__)

_STRING_OR_BREAK = re.compile(r'("(?:[^"\\]|\\.)*+(?:"|\Z))|([,{\[])', re.DOTALL)
_PREVIEW_CHARS = 12_000
_SMALLEST_FIELD_CHARS = 400
# What the JSON around a preview takes: the note, the id, the sizes.
_ENVELOPE_CHARS = 500


def fit(outcome: Outcome, *, tool: str, max_chars: float, store: ResultStore | None) -> Outcome:
    """The outcome, if it is short enough; else its head and tail, its size and the id under which all of it is kept."""
    if isinstance(outcome, dict):
        return _fit_multimodal(outcome, tool=tool, max_chars=max_chars, store=store)
    if len(outcome) <= max_chars:
        return outcome
    parsed = _parsed(outcome)
    if isinstance(parsed, dict):
        shortened = _shorten_fields(parsed, tool=tool, max_chars=max_chars, store=store)
        if shortened is not None:
            return shortened
    # One line of JSON cannot be paged by lines; spread out, it can.
    if outcome.startswith(("{", "[")) and "\n" not in outcome:
        outcome = _STRING_OR_BREAK.sub(lambda found: found.group(1) or f"{found.group(2)}\n", outcome)
    return to_json(_preview(outcome, tool=tool, max_chars=max_chars, store=store))


def fit_turn(outcomes: list[tuple[str, Outcome]], *, max_chars: float, store: ResultStore | None) -> list[Outcome]:
    """The outcomes of one turn, given with their tools' names, the largest shortened first until all fit together."""
    fitted = [outcome for _, outcome in outcomes]
    total = sum(len(outcome) for outcome in fitted if isinstance(outcome, str))
    for index in sorted(range(len(fitted)), key=lambda index: -len(fitted[index])):
        outcome = fitted[index]
        if total <= max_chars or not isinstance(outcome, str) or len(outcome) <= _ENVELOPE_CHARS * 2:
            continue
        allowed = max(_ENVELOPE_CHARS * 2, len(outcome) - (total - max_chars))
        fitted[index] = fit(outcome, tool=outcomes[index][0], max_chars=allowed, store=store)
        total -= len(outcome) - len(fitted[index])
    return fitted


def _shorten_fields(result: JsonDict, *, tool: str, max_chars: float, store: ResultStore | None) -> str | None:
    """Shorten the long texts inside a result, so that what stands beside them (an exit code, a path) stays readable."""
    result = dict(result)
    kept: dict[str, JsonDict] = {}
    while len(text := to_json({**result, "stored": kept} if kept else result)) > max_chars:
        name = max(
            (key for key, value in result.items() if isinstance(value, str) and key not in kept),
            key=lambda key: len(result[key]),
            default=None,
        )
        if name is None or len(result[name]) < _SMALLEST_FIELD_CHARS:
            return None
        budget = max_chars - (len(text) - len(to_json(result[name])))
        preview = _preview(result[name], tool=tool, max_chars=max(budget, _SMALLEST_FIELD_CHARS), store=store)
        result[name] = f"{preview.pop('head')}\n[... {preview['note']} ...]\n{preview.pop('tail')}"
        kept[name] = {key: value for key, value in preview.items() if key != "note"}
    return text


def _preview(text: str, *, tool: str, max_chars: float, store: ResultStore | None) -> JsonDict:
    chars, lines = len(text), text.count("\n") + 1
    room = int(min(_PREVIEW_CHARS, max(0, max_chars - _ENVELOPE_CHARS)))
    head, tail = _cut(text, room * 2 // 3), _cut(text, -(room // 3))
    size: JsonDict = {"chars": chars, "lines": lines}
    where: JsonDict
    try:
        if store is None:
            raise OSError("this runtime has no result store")
        stored = store.put(tool, text)
        where = {"id": stored.id, **size}
        note = f"{chars:,} characters in {lines:,} lines; read_result with id {stored.id} pages or greps all of it"
    except OSError as error:
        log.warning("a long result of %s could not be kept: %s", tool, error)
        where, note = size, f"{chars:,} characters in {lines:,} lines; the middle is lost: {error}"
    return {**where, "head": head, "tail": tail, "note": note}


def _cut(text: str, chars: int) -> str:
    """The first (or, negative, the last) characters whose JSON form is not longer than that, ending at a line if one is near."""
    limit = abs(chars)
    if limit == 0:
        return ""
    part = text[:limit] if chars > 0 else text[-limit:]
    while part and (over := len(to_json(part)) - 2 - limit) > 0:
        keep = len(part) - max(1, min(over, len(part) // 2))
        part = part[:keep] if chars > 0 else part[-keep:] if keep else ""
    edge = part.rfind("\n") if chars > 0 else part.find("\n")
    if edge != -1 and abs((len(part) if chars > 0 else 0) - edge) < limit // 4:
        part = part[:edge] if chars > 0 else part[edge + 1 :]
    return part


def _fit_multimodal(outcome: JsonDict, *, tool: str, max_chars: float, store: ResultStore | None) -> JsonDict:
    parts: list[Any] = outcome["content"]
    texts = [part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)]
    if sum(map(len, texts)) <= max_chars:
        return outcome
    share = max_chars / max(1, len(parts))

    def fitted(part: Any) -> Any:
        is_text = isinstance(part, dict) and isinstance(part.get("text"), str)
        return {**part, "text": fit(part["text"], tool=tool, max_chars=share, store=store)} if is_text else part

    return {**outcome, "content": [fitted(part) for part in parts]}


def _parsed(text: str) -> Any:
    """The JSON in a text, if writing it again would lose nothing."""
    if not text.startswith("{"):
        return None
    try:
        return json.loads(text, parse_constant=refuse_constant, parse_float=_exact, object_pairs_hook=_distinct)
    except (ValueError, RecursionError):
        return None


def _exact(digits: str) -> float:
    value = float(digits)
    if repr(value) != digits:
        raise ValueError(f"{digits} would not be the same again")
    return value


def _distinct(pairs: list[tuple[str, Any]]) -> JsonDict:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("a name stands twice")
    return fields
