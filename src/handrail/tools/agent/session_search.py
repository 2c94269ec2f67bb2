"""The tool `session_search`: find what was said in earlier sessions."""

from ...core.builtin import integer, registry, text, tool_schema
from ...core.registry import tool_result
from ...types import AgentState, JsonDict

MAX_HITS = 30


def session_search(args: JsonDict, *, agent: AgentState, **_: object) -> str:
    limit, offset = min(int(args.get("limit", 8)), MAX_HITS), int(args.get("offset", 0))
    query, session = str(args.get("query") or "").strip(), str(args.get("session") or "").strip()
    if args.get("around") is not None:
        return tool_result(messages=list(agent.messages_around(int(args["around"]), int(args.get("span", 4)))))
    if query:
        return tool_result(query=query, hits=list(agent.search_sessions(query, limit)))
    if session:
        found = {"messages": list(agent.messages_of(session, limit, offset))}
    else:
        found = {"sessions": list(agent.recent_sessions(limit, offset))}
    is_more = any(len(page) == limit for page in found.values())
    return tool_result(**found, **({"next_offset": offset + limit} if is_more else {}))


registry.register(
    name="session_search",
    toolset="session_search",
    schema=tool_schema(
        "Search what was said and done in earlier sessions: words in any order, or 'exact text' in double quotes. Each hit "
        "has a message_id, which around shows with its neighbours. Without a query: the latest sessions, or with session "
        "the messages of that one.",
        query=text("What to look for."),
        limit=integer("Default 8.", minimum=1, maximum=MAX_HITS),
        session=text("The id of one to read."),
        offset=integer("next_offset of the last answer.", minimum=0),
        around=integer("A message_id."),
        span=integer("Messages each side. Default 4.", minimum=1, maximum=20),
    ),
    handler=session_search,
    emoji="🔎",
    read_only=True,
    needs_agent=True,
    toolset_description="search past sessions",
    example=[{"query": '"deploy key" staging'}, {}],
)
