"""`session_search`: what was said in earlier sessions. The store belongs to the agent that runs the tool."""

from __future__ import annotations

from ..protocols import AgentState
from ..types import JsonDict
from .registry import registry, tool_result

MAX_HITS = 30


def session_search(args: JsonDict, *, agent: AgentState, **_: object) -> str:
    limit = min(int(args.get("limit", 8)), MAX_HITS)
    if args.get("around") is not None:
        return tool_result(messages=list(agent.messages_around(int(args["around"]), int(args.get("span", 4)))))
    query = str(args.get("query") or "").strip()
    if not query:
        return tool_result(sessions=list(agent.recent_sessions(limit)))
    return tool_result(query=query, hits=list(agent.search_sessions(query, limit)))


registry.register(
    name="session_search",
    toolset="session_search",
    schema={
        "description": (
            "Search everything that was said and done in earlier sessions. query: words in any order, or 'exact text' in double "
            "quotes; each hit has a message_id, which around shows with its neighbours. Without a query it lists the latest "
            "sessions."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "What to look for."},
                "limit": {"type": "integer", "minimum": 1, "maximum": MAX_HITS, "description": "Hits. Default 8."},
                "around": {"type": "integer", "description": "A message_id, to read the messages around it."},
                "span": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": 20,
                    "description": "Messages each side. Default 4.",
                },
            },
        },
    },
    handler=session_search,
    emoji="🔎",
    read_only=True,
    needs_agent=True,
)
