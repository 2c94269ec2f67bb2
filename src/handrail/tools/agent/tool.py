"""The tools of the agent loop: ask the user, delegate, remember, search past sessions, keep a list of what is to do."""

from collections.abc import Awaitable
from typing import Any

from ...core.builtin import integer, registry, text, texts, tool_schema
from ...core.registry import tool_result
from ...errors import InvalidArguments, ToolFailed
from ...protocols import TodoItem
from ...types import AgentState, JsonDict, Resources, ToolContext


def clarify(args: JsonDict, *, context: ToolContext, **_: object) -> str | Awaitable[str]:
    question = args["question"].strip()
    if not question:
        raise ToolFailed("the question is empty")
    choices = [choice.strip() for choice in args.get("choices", ()) if choice.strip()]
    answer = context.person.ask(question, choices) if context.person is not None else None
    return _result(question, answer) if answer is None or isinstance(answer, str) else _result_later(question, answer)


async def _result_later(question: str, answer: Awaitable[str | None]) -> str:
    return _result(question, await answer)


def _result(question: str, answer: str | None) -> str:
    if answer is None:
        raise ToolFailed(
            "nobody answered. Go on with the most sensible assumption, and say which one you made.",
            question=question,
            answered=False,
        )
    return tool_result(question=question, answer=answer, answered=True)


registry.register(
    name="clarify",
    toolset="clarify",
    schema=tool_schema(
        "Ask the user one question and wait for the answer. For decisions that are theirs; not for what you can find "
        "out yourself.",
        ("question",),
        question=text("The question."),
        choices=texts("Answers to offer; the user may still write another.", maxItems=8),
    ),
    handler=clarify,
    emoji="❓",
    toolset_description="ask the user a question",
    example={"question": "Which colour should the rail have?", "choices": ["green", "brass"]},
)
MAX_TASKS = 8


async def delegate_task(args: JsonDict, *, agent: AgentState, context: ToolContext, **_: object) -> str:
    action = args.get("action", "start")
    if action != "start":
        import asyncio  # listing the tools stays light without it

        about = {name: args.get(name, "") for name in ("child", "message")}
        return tool_result(children=list(await asyncio.to_thread(agent.manage_children, action, **about)))
    tasks = args.get("tasks") or []
    if args.get("goal"):
        tasks = [{key: args[key] for key in ("goal", "context", "toolsets") if key in args}, *tasks]
    if not tasks:
        raise InvalidArguments("give a goal, or tasks with a goal each")
    if len(tasks) > MAX_TASKS:
        raise InvalidArguments(f"{len(tasks)} tasks are too many at once; give at most {MAX_TASKS}")
    if args.get("background"):
        return tool_result(children=list(agent.manage_children("start", tasks=tasks)))
    return tool_result(results=list(await agent.delegate(tasks, context.cancel, context.progress)))


_TASK: dict[str, JsonDict] = {
    "goal": text("What to do. It knows nothing of this conversation.", minLength=1),
    "context": text("What it has to know: paths, findings."),
    "toolsets": texts("Default: yours."),
}
registry.register(
    name="delegate_task",
    toolset="delegation",
    schema=tool_schema(
        "Hand parts of the work to child agents, and get summaries. They cannot ask; give them all they need.",
        **_TASK,
        tasks={
            "type": "array",
            "maxItems": MAX_TASKS,
            "items": {
                "type": "object",
                "properties": {name: {**schema, "description": "As above."} for name, schema in _TASK.items()},
                "required": ["goal"],
                "additionalProperties": False,
            },
            "description": "Several at once.",
        },
        background={"type": "boolean", "description": "Do not wait."},
        action=text("For those.", enum=["list", "steer", "stop"]),
        child=text("Which."),
        message=text("For steer."),
    ),
    handler=delegate_task,
    is_async=True,
    emoji="👥",
    needs_agent=True,
    timeout=3600,
    toolset_description="delegate tasks to child agents",
    example={
        "tasks": [
            {"goal": "List what the tests of src/parser leave out.", "toolsets": ["file"]},
            {"goal": "Find who calls parse() and with what.", "context": "The function is in src/parser/main.py."},
        ]
    },
)


def memory(args: JsonDict, *, agent: AgentState, **_: object) -> str:
    store, action = args.get("target", "memory"), args["action"]
    needs = {"add": ("content",), "replace": ("old_text", "content"), "remove": ("old_text",)}[action]
    for name in needs:
        if not str(args.get(name) or "").strip():
            raise InvalidArguments(f"{action} needs {name}")
    given = [args[name] for name in needs]
    entries, used, fits = agent.remember(store, action, *given)
    return tool_result(target=store, entries=list(entries), used_chars=used, max_chars=fits)


registry.register(
    name="memory",
    toolset="memory",
    schema=tool_schema(
        "Keep facts across sessions, in two small stores: memory (your own notes: how this machine and project work) and "
        "user (who they are, what they prefer). Short entries of lasting worth; not tasks, not what is in files. New "
        "entries are in your prompt from the next session on.",
        ("action",),
        action=text("What to do with an entry.", enum=["add", "replace", "remove"]),
        target=text("Which store. Default memory.", enum=["memory", "user"]),
        content=text("The entry, for add and replace."),
        old_text=text("A part of the one entry to replace or remove."),
    ),
    handler=memory,
    emoji="🧠",
    resources=lambda args: Resources(writes=(f"agent/memory/{args.get('target', 'memory')}",)),
    needs_agent=True,
    toolset_description="remember facts across sessions",
    example=[
        {"action": "add", "content": "The tests need Docker; `make test` starts it."},
        {"action": "add", "target": "user", "content": "Prefers short answers."},
        {"action": "replace", "target": "user", "old_text": "short", "content": "Prefers short answers, with sources."},
    ],
)
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
STATUSES = ("pending", "in_progress", "completed", "cancelled")
MAX_ITEMS = 256
MAX_CONTENT_CHARS = 4_000


def todo(args: JsonDict, *, agent: AgentState, **_: object) -> str:
    given = args.get("todos")
    if given is not None:
        ids = [fields["id"] for fields in given]
        doubled = {item_id for item_id in ids if ids.count(item_id) > 1} if len(ids) <= MAX_ITEMS else set()
        if doubled:
            raise InvalidArguments(f"each id may be given once; repeated: {', '.join(sorted(doubled))}")
        if args.get("merge", False):
            agent.todos.merge(given)
        else:
            agent.todos.replace([_item(fields) for fields in given])
    items = agent.todos.items()
    counts = {status: sum(item.status == status for item in items) for status in STATUSES}
    listed = [{"id": item.id, "content": item.content, "status": item.status} for item in items]
    return tool_result(todos=listed, counts=counts)


def _item(fields: JsonDict) -> TodoItem:
    if not str(fields.get("content", "")).strip():
        raise InvalidArguments(f"item {fields['id']!r} has no content")
    return TodoItem(fields["id"], fields["content"], fields.get("status", "pending"))


def _resources(args: JsonDict) -> Resources:
    key = ("agent/todos",)
    return Resources(writes=key) if args.get("todos") is not None else Resources(reads=key)


_ITEM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "minLength": 1, "maxLength": 64, "description": "Yours."},
        "content": {"type": "string", "maxLength": MAX_CONTENT_CHARS, "description": "What to do."},
        "status": {"type": "string", "enum": list(STATUSES), "description": "Default pending."},
    },
    "required": ["id"],
    "additionalProperties": False,
}
registry.register(
    name="todo",
    toolset="todo",
    schema=tool_schema(
        "Your task list, for work of three steps or more. Without todos it reads the list; with them "
        "it replaces the list, or with merge changes the items of the same id and adds the others. Keep one item "
        "in_progress and mark each completed as soon as it is.",
        todos={"type": "array", "maxItems": MAX_ITEMS, "items": _ITEM, "description": "The items."},
        merge={"type": "boolean", "description": "Change and add instead of replacing. Default false."},
    ),
    handler=todo,
    emoji="📋",
    resources=_resources,
    needs_agent=True,
    toolset_description="keep a list of tasks",
    example=[
        {
            "todos": [
                {"id": "1", "content": "Write the test", "status": "in_progress"},
                {"id": "2", "content": "Fix the parser"},
            ]
        },
        {"merge": True, "todos": [{"id": "1", "status": "completed"}, {"id": "2", "status": "in_progress"}]},
        {},
    ],
)
