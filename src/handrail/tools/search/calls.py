"""Run calls of `tool_search`, `tool_describe` and `tool_call`."""

import inspect
import math
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from ...base.suggest import did_you_mean
from ...core.builtin import registry
from ...core.entry import ToolEntry
from ...core.outcome import tool_result
from ...errors import InvalidArguments, ToolFailed, UnknownTool
from ...types import JsonDict, Resources, Toolbox, ToolContext

TOOLSET = "tool_search"
_SUMMARY_CHARS = 200
_SATURATION = 1.2
_RELATED, _SAME_PREFIX = 0.5, 0.6
_MIN_PREFIX = 4


def tool_search(args: JsonDict, *, context: ToolContext, **_: object) -> str:
    entries = _searchable(_toolbox(context))
    if not (found := index_of(entries).search(args["query"], limit=args.get("limit") or 5)):
        sets = sorted({entry.toolset for entry in entries})
        hint = f"nothing matches; try other words. There are {len(entries)} tools, of: {', '.join(sets)}"
        return tool_result({"tools": [], "note": hint})
    shown = [{"name": one.entry.name, "call": _call(one.entry), "does": _summary(one.entry)} for one in found]
    return tool_result({"tools": shown})


def tool_describe(args: JsonDict, *, context: ToolContext, **_: object) -> str:
    known = {entry.name: entry for entry in _searchable(_toolbox(context))}
    for name in args["names"]:
        if name not in known:
            raise _unknown(name, known)
    return tool_result({"tools": [known[name].schema for name in args["names"]]})


async def tool_call(args: JsonDict, *, context: ToolContext, **_: object) -> Any:
    tools = _toolbox(context)
    name = args["name"]
    known = {entry.name: entry for entry in _searchable(tools)}
    if name not in known:
        raise _unknown(name, known)
    return await tools.acall(name, args.get("arguments") or {})


def resources(args: JsonDict, context: ToolContext) -> Resources:
    """The resources of the called tool. A tool without any runs alone, as does a call for which this raises."""
    entry = next(entry for entry in _toolbox(context).entries() if entry.name == args["name"])
    if entry.resources is None:
        if entry.read_only:
            return Resources()
        raise InvalidArguments(f"{entry.name} may touch anything")
    arguments = args.get("arguments") or {}
    takes_context = len(inspect.signature(entry.resources).parameters) > 1
    touched: Resources = entry.resources(arguments, context) if takes_context else entry.resources(arguments)
    return touched


def _toolbox(context: ToolContext) -> Toolbox:
    if context.tools is None:
        raise ToolFailed("this runtime lets no tool call others; use the runtime's own dispatch")
    return context.tools


def _searchable(tools: Toolbox) -> tuple[ToolEntry, ...]:
    return tuple(entry for entry in tools.entries() if entry.toolset != TOOLSET)


def _unknown(name: str, known: dict[str, ToolEntry]) -> Exception:
    own = registry.get_entry(name)
    if own is not None and own.toolset == TOOLSET:
        return InvalidArguments(f"call {name} itself, not by another tool", argument="name")
    return UnknownTool(f"there is no tool {name[:100]!r}; {did_you_mean(name, known)}, or search for it")


def _call(entry: ToolEntry) -> str:
    """`read_file(path, offset?)`."""
    schema = entry.schema["parameters"]
    required: Sequence[str] = schema.get("required", ())
    names = sorted(schema.get("properties", {}), key=lambda name: name not in required)
    return f"{entry.name}({', '.join(name if name in required else name + '?' for name in names)})"


def _summary(entry: ToolEntry) -> str:
    text = " ".join(entry.description.split())
    return text if len(text) <= _SUMMARY_CHARS else f"{text[:_SUMMARY_CHARS].rsplit(' ', 1)[0]} ..."


class _Field(NamedTuple):
    weight: float
    by_length: float  # how much a word in a long text counts less, from 0 to 1


_FIELDS = {
    "name": _Field(3.0, 0.3),
    "toolset": _Field(1.5, 0.3),
    "summary": _Field(1.8, 0.6),
    "rest": _Field(0.8, 0.75),
    "arguments": _Field(0.5, 0.75),
}


class Found(NamedTuple):
    entry: ToolEntry
    score: float


class Index:
    """Built once for a set of tools, searched often."""

    def __init__(self, entries: Sequence[ToolEntry]) -> None:
        self._entries = entries
        texts = [_texts(entry) for entry in entries]
        average = {field: max(1.0, sum(len(text[field]) for text in texts) / max(1, len(texts))) for field in _FIELDS}
        self._weights: dict[str, dict[int, float]] = {}
        for number, text in enumerate(texts):
            for field, (weight, by_length) in _FIELDS.items():
                scale = weight / (1 - by_length + by_length * len(text[field]) / average[field])
                for word, count in Counter(text[field]).items():
                    tools = self._weights.setdefault(word, {})
                    tools[number] = tools.get(number, 0.0) + count * scale
        self._vocabulary = sorted(self._weights)

    def search(self, query: str, *, limit: int) -> list[Found]:
        """The best first. Each word of the query counts once, by its best match."""
        scores: dict[int, float] = {}
        for word in dict.fromkeys(words(query)):
            best: dict[int, float] = {}
            for variant, share in self._variants(word).items():
                tools = self._weights[variant]
                rarity = math.log(1 + (len(self._entries) - len(tools) + 0.5) / (len(tools) + 0.5))
                for number, weight in tools.items():
                    score = share * rarity * weight / (weight + _SATURATION)
                    if score > best.get(number, 0.0):
                        best[number] = score
            for number, score in best.items():
                scores[number] = scores.get(number, 0.0) + score
        wanted = query.strip()
        for number in scores:
            if self._entries[number].name == wanted:
                scores[number] = math.inf
        ranked = sorted(scores, key=lambda number: (-scores[number], self._entries[number].name))
        return [Found(self._entries[number], scores[number]) for number in ranked[:limit]]

    def _variants(self, word: str) -> dict[str, float]:
        """The words of the index that match, and how much each counts."""
        found = {other: _RELATED for other in related(word) if other in self._weights}
        if len(word) >= _MIN_PREFIX:
            for at in range(bisect_left(self._vocabulary, word), len(self._vocabulary)):
                if not self._vocabulary[at].startswith(word):
                    break
                found[self._vocabulary[at]] = _SAME_PREFIX
            for end in range(_MIN_PREFIX, len(word)):
                if word[:end] in self._weights:
                    found[word[:end]] = _SAME_PREFIX
        if word in self._weights:
            found[word] = 1.0
        return found


index_of = lru_cache(maxsize=4)(Index)


def _texts(entry: ToolEntry) -> dict[str, list[str]]:
    summary, _, rest = entry.description.strip().partition("\n")
    first, dot, more = summary.partition(". ")
    arguments = [
        f"{name} {schema.get('description', '')} {' '.join(map(str, schema.get('enum') or ()))}"
        if isinstance(schema, dict)
        else name
        for name, schema in entry.schema["parameters"].get("properties", {}).items()
    ]
    return {
        "name": words(entry.name),
        "toolset": words(entry.toolset),
        "summary": words(first),
        "rest": words(f"{more if dot else ''} {rest}"),
        "arguments": words(" ".join(arguments)),
    }


_WORDS = re.compile(r"[^\W_]+")
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_STOP = frozenset(
    "a about all an and any anything are as at be by can could did do does for from has have how i if in into is it "
    "its like me my of on or our should so some something that the their them then there these this to up us use used using "
    "want was we what when where which will with would you your tool tools please need".split()
)


def words(text: str) -> list[str]:
    """The words of a text or a name, in order: `listOpenIssues` is list, open, issue."""
    found = (part for word in _WORDS.findall(text) for part in (_PARTS.findall(word) if word.isascii() else [word]))
    return [stem(part) for part in map(str.lower, found) if part not in _STOP]


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """A word without its ending: coarse, but the same for all forms of most words."""
    if len(word) <= 3 or not word.isascii():
        return word
    for ending, instead in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)] + instead
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiouls":
        word = word[:-1]
    return word[:-1] if len(word) > 3 and word.endswith("e") else word


_ENDINGS = [
    pair.split(">")
    for pair in (
        "ations>at ation>at ments>ment iness>y ingly> ies>y ing> ied>y sses>ss shes>sh ches>ch xes>x ed> ly> ss>ss us>us is>is s>"
    ).split()
]


def related(word: str) -> frozenset[str]:
    """Other words for the same thing."""
    return _related().get(word, frozenset())


@lru_cache(maxsize=1)
def _related() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    lines = Path(__file__).with_name("synonyms.txt").read_text("utf-8").splitlines()
    for line in lines[1:]:
        group = {stem(word) for word in line.split()}
        for word in group:
            found.setdefault(word, set()).update(group - {word})
    return {word: frozenset(others) for word, others in found.items()}
