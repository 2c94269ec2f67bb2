"""`web_search`: find pages on the web."""

from __future__ import annotations

from ..errors import InvalidArguments, ToolUnavailable
from ..types import JsonDict, ToolContext, Unavailable
from .registry import registry, tool_result

_HITS = 8
_FIELD_CHARS = 600


async def web_search(args: JsonDict, *, context: ToolContext | None = None, **_: object) -> str:
    from .web.search import search
    from .web.settings import config_of
    from .web.untrusted import NOTE, clean

    query = args["query"].strip()
    if not query:
        raise InvalidArguments("the query is empty", argument="query")
    limit = args.get("limit", _HITS)
    found = await search(query, limit, config_of(context).web)
    if isinstance(found, Unavailable):
        raise ToolUnavailable(f"web_search is unavailable: {found}", reason=found.reason, fix=found.fix)
    backend, hits = found
    shown = [
        {name: clean(value)[:_FIELD_CHARS] for name, value in hit._asdict().items() if value} for hit in hits[:limit]
    ]
    if not shown:
        return tool_result(results=[], backend=backend, hint="nothing was found; try fewer or other words")
    return tool_result(note=NOTE, results=shown, backend=backend)


def _check() -> Unavailable | bool:
    from ..config import load_config
    from .web.search import choose

    chosen = choose(load_config().web)
    return chosen if isinstance(chosen, Unavailable) else True


registry.register(
    name="web_search",
    toolset="web",
    schema={
        "description": "Search the web: titles, addresses and snippets. Then read what looks right with `web_extract`.",
        "parameters": {
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "What to look for, as you would type it."},
                "limit": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": 20,
                    "description": f"Results at most ({_HITS}).",
                },
            },
            "required": ["query"],
        },
    },
    handler=web_search,
    is_async=True,
    check_fn=_check,
    emoji="🔎",
    timeout=90,
    read_only=True,
)
