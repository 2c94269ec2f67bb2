"""List the tools that a model is shown: chosen by toolset, able to work now, written for its provider. What is used
rarely, over all starts, is left out of a long list first."""

from __future__ import annotations

import gc
import json
import logging
import marshal
import re
import threading
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from .provider_formats import Format, writer

if TYPE_CHECKING:
    from ..core.registry import ToolEntry, ToolRegistry
    from ..toolsets import Toolsets
    from ..types import JsonDict, Unavailable

log = logging.getLogger(__name__)

_KEPT_LISTINGS = 16
SEARCH_TOOLSET = "tool_search"
SEARCH_TOOL = "tool_search"
# What a token of a schema has on average; models differ little here.
CHARS_PER_TOKEN = 4
_MAX_SETS_NAMED = 40
_WORDS = re.compile(
    r"`([A-Za-z0-9_-]{1,64})`|(?<![A-Za-z0-9_-])([A-Za-z0-9][A-Za-z0-9_-]{0,62}[A-Za-z0-9])(?![A-Za-z0-9_-])"
)
_SENTENCES = re.compile(r"(?<=[.!?;])(\s+)|(\n+)")
_TEXTS = ("description", "title", "$comment", "examples")


class _Selection(NamedTuple):
    """What a choice of toolsets means, as long as the registry does not change."""

    entries: tuple[ToolEntry, ...]
    checked: tuple[ToolEntry, ...]
    dynamic: tuple[ToolEntry, ...]
    others: frozenset[str]
    searchers: tuple[ToolEntry, ...]  # what finds the tools that a list has no room for
    names: frozenset[str]  # of all of them


class Definitions:
    """Lists tools. A listing is kept as bytes as long as nothing that it depends on changes, and every caller gets a
    copy of its own."""

    def __init__(self, registry: ToolRegistry, toolsets: Toolsets) -> None:
        self._registry = registry
        self._toolsets = toolsets
        self._selections: OrderedDict[tuple[Any, ...], _Selection] = OrderedDict()
        self._listings: OrderedDict[tuple[Any, ...], bytes] = OrderedDict()
        self._lock = threading.Lock()
        # How often each tool was used before now. A list that changes while it is used would cost the model its cache.
        self.uses: Mapping[str, int] = {}

    def list(
        self,
        enabled: Iterable[str] | None = None,
        disabled: Iterable[str] | None = None,
        *,
        quiet: bool = False,
        format: Format = "openai",  # noqa: A002  what it is
        max_chars: int | None = None,
        at_hand: Iterable[str] | None = None,
    ) -> list[JsonDict]:
        """`max_chars`: if they would be longer than that, what is rarely used is left out, to be searched for. So are the
        built-in tools of other toolsets than those `at_hand`, unless they were used before.

        Raises UnknownToolset.
        """
        chosen = (self._registry.generation, None if enabled is None else tuple(enabled), tuple(disabled or ()))
        selection = self._selection(chosen)
        missing = self._registry.availability.unavailable(selection.checked)
        if missing and not quiet:
            for name, why in sorted(missing.items()):
                log.info("%s is not listed: %s", name, why)
        listed = frozenset(entry.name for entry in selection.entries) - missing.keys() if selection.dynamic else None
        overrides = {
            e.name: e.fields_now(listed or frozenset(), self._registry.availability.config)
            for e in selection.dynamic
            if e.name not in missing
        }
        key = (
            chosen,
            format,
            frozenset(missing),
            marshal.dumps(overrides) if overrides else b"",
            max_chars,
            at_hand and tuple(at_hand),
        )
        with _no_collecting():
            frozen = self._listings.get(key)
            if frozen is not None:
                return cast("list[JsonDict]", marshal.loads(frozen))  # our own bytes
            definitions = _build(selection, missing, overrides, format)
            if max_chars is not None:
                near = None if at_hand is None else frozenset(self._toolsets.select(list(at_hand), ()))
                definitions = _shortened(selection, missing, definitions, format, (max_chars, self.uses, near))
            self._keep(self._listings, key, marshal.dumps(definitions))
            return definitions

    def names(self, enabled: Iterable[str] | None = None, disabled: Iterable[str] | None = None) -> frozenset[str]:
        """The names of all that was chosen, in the list or not: what a model may call. Raises UnknownToolset."""
        return self._selection(
            (self._registry.generation, None if enabled is None else tuple(enabled), tuple(disabled or ()))
        ).names

    def _selection(self, chosen: tuple[int, tuple[str, ...] | None, tuple[str, ...]]) -> _Selection:
        known = self._selections.get(chosen)
        if known is not None:
            return known
        chosen_names = self._toolsets.select(chosen[1], chosen[2])
        # They are there whatever was chosen, unless somebody does not want them.
        searchers = self._registry.get_entries(self._toolsets.select([SEARCH_TOOLSET], chosen[2]))
        names = {*chosen_names, *(entry.name for entry in searchers)}
        found = tuple([e for e in self._registry.get_entries(chosen_names) if e.toolset != SEARCH_TOOLSET])
        selection = _Selection(
            found,
            tuple([entry for entry in found if entry.check_fn is not None]),
            tuple([entry for entry in found if entry.dynamic_schema_overrides is not None]),
            frozenset(self._registry.get_names_ever_used().difference(names)),
            searchers,
            frozenset(entry.name for entry in (*found, *searchers)),
        )
        self._keep(self._selections, chosen, selection)
        return selection

    def _keep(self, cache: OrderedDict[tuple[Any, ...], Any], key: tuple[Any, ...], value: Any) -> None:
        with self._lock:
            cache[key] = value
            while len(cache) > _KEPT_LISTINGS:
                cache.popitem(last=False)


@contextmanager
def _no_collecting() -> Iterator[None]:
    """A listing is one burst of new dicts, none of them garbage: looking for some in between costs more than making them."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _build(
    selection: _Selection,
    missing: dict[str, Unavailable],
    overrides: dict[str, JsonDict],
    format: Format,  # noqa: A002  the name that callers know
) -> list[JsonDict]:
    write = writer(format)
    loads, definition = marshal.loads, write.definition

    def worked_out(schema: JsonDict) -> tuple[bytes, frozenset[str]]:
        return marshal.dumps(write.parameters(schema)), names_in(schema)

    entries = [entry for entry in selection.entries if entry.name not in missing] if missing else selection.entries
    definitions, contract, frozen = [], None, b""
    for entry in entries:
        if entry.contract is not contract:  # families of tools share one
            contract = entry.contract
            frozen = contract.derived(format, worked_out)[0]
        definitions.append(definition(entry.name, entry.description, loads(frozen), entry.read_only))
    absent = selection.others.union(missing)
    if not absent and not overrides:
        return definitions
    for position, entry in enumerate(entries):
        fields = overrides.get(entry.name, {})
        frozen, named = entry.contract.derived(format, worked_out)
        description = fields.get("description", entry.description)
        if "parameters" in fields:
            named = names_in(fields["parameters"])
        silent = named.isdisjoint(absent) and names_in(description).isdisjoint(absent)
        if fields or not silent:
            parameters = write.parameters(fields["parameters"]) if "parameters" in fields else loads(frozen)
            texts = without(description, absent), without(parameters, absent)
            definitions[position] = definition(entry.name, *texts, entry.read_only)
    return definitions


def _shortened(
    selection: _Selection,
    missing: dict[str, Unavailable],
    definitions: list[JsonDict],
    format: Format,  # noqa: A002  the name that callers know
    bounds: tuple[int, Mapping[str, int], frozenset[str] | None],
) -> list[JsonDict]:
    """The list without what is rarely used, and with what finds that."""
    entries = [entry for entry in selection.entries if entry.name not in missing]
    max_chars, uses, near = bounds
    kept = fitting(entries, definitions, max_chars=max_chars, uses=uses, near=near) if selection.searchers else None
    if kept is None:
        return definitions
    deferred = [entry for entry in entries if entry.name not in kept]
    fields: dict[str, JsonDict] = {
        entry.name: {"description": invitation(entry.description, deferred)}
        for entry in selection.searchers
        if entry.name == SEARCH_TOOL
    }
    searchers = _build(selection._replace(entries=selection.searchers), {}, fields, format)
    listed = [each for each, entry in zip(definitions, entries, strict=True) if entry.name in kept]
    return [*listed, *searchers]


# In prose a tool's name stands in backticks, or is no plain word: it has an underscore, a hyphen or a capital inside.
def names_in(value: Any) -> frozenset[str]:
    """What could be names of tools in a text, or in all the texts of a schema."""
    if isinstance(value, str):
        return frozenset(quoted or bare for quoted, bare in _WORDS.findall(value) if quoted or _is_no_plain_word(bare))
    if isinstance(value, dict):
        return frozenset().union(*(names_in(sub) for key, sub in value.items() if _may_hold_text(key, sub)))
    if isinstance(value, list):
        return frozenset().union(*(names_in(item) for item in value))
    return frozenset()


def without(value: Any, absent: AbstractSet[str]) -> Any:
    """The text, or the schema, with every sentence gone that names one of these."""
    if isinstance(value, str):
        return _text_without(value, absent)
    if isinstance(value, list):
        return [without(item, absent) for item in value]
    if not isinstance(value, dict):
        return value
    return {key: without(sub, absent) if _may_hold_text(key, sub) else sub for key, sub in value.items()}


def _may_hold_text(key: str, value: Any) -> bool:
    if isinstance(value, str):
        return key in _TEXTS
    if isinstance(value, list):
        return key in _TEXTS or any(isinstance(item, dict | list) for item in value)
    return isinstance(value, dict)


def _is_no_plain_word(word: str) -> bool:
    return "_" in word or "-" in word or not (word.islower() or word.isupper() or word[1:].islower())


def _text_without(text: str, absent: AbstractSet[str]) -> str:
    if names_in(text).isdisjoint(absent):
        return text
    pieces = [piece for piece in _SENTENCES.split(text) if piece is not None]
    kept: list[str] = []
    for sentence, gap in zip(pieces[::2], [*pieces[1::2], ""], strict=False):
        if names_in(sentence).isdisjoint(absent):
            kept += [sentence, gap]
    left = "".join(kept).strip()
    if left:
        return left
    return _WORDS.sub(lambda m: "another tool" if (m.group(1) or m.group(2)) in absent else m.group(0), text)


def room(context_tokens: int, share: float) -> int:
    """Characters that the definitions may have."""
    return int(context_tokens * share * CHARS_PER_TOKEN)


def fitting(
    entries: Sequence[ToolEntry],
    definitions: Sequence[JsonDict],
    *,
    max_chars: int,
    uses: Mapping[str, int],
    near: frozenset[str] | None = None,
) -> frozenset[str] | None:
    """The names of the tools that stay in the list; None: all of them do. Of our own only those of `near`, and used ones.

    Those that were used most stay; of those that were never used, our own before those of servers and plugins, and the short
    before the long.
    """
    sizes = [len(json.dumps(definition, ensure_ascii=False)) for definition in definitions]
    numbers = [
        number
        for number, entry in enumerate(entries)
        if near is None or entry.name in near or uses.get(entry.name) or _is_brought(entry)
    ]
    if len(numbers) == len(entries) and sum(sizes) <= max_chars:
        return None
    order = sorted(
        numbers,
        key=lambda n: (-uses.get(entries[n].name, 0), _is_brought(entries[n]), sizes[n], entries[n].name),
    )
    kept, taken = set(), 0
    for number in order:
        if taken + sizes[number] <= max_chars:
            taken += sizes[number]
            kept.add(entries[number].name)
    return frozenset(kept)


def invitation(description: str, deferred: Sequence[ToolEntry]) -> str:
    """The description of `tool_search` for a list without these: what there is to be found."""
    sets = Counter(entry.toolset for entry in deferred).most_common()
    named = [f"{name.removeprefix('mcp-')} ({count})" for name, count in sets[:_MAX_SETS_NAMED]]
    more = f" and {len(sets) - len(named)} more" if len(sets) > len(named) else ""
    return f"{description} Not in your list are {len(deferred)} tools, of: {', '.join(named)}{more}."


def _is_brought(entry: ToolEntry) -> bool:
    return bool(entry.owner) or entry.toolset.startswith("mcp-")
