"""The tool `todo`: a task list, which belongs to the agent that runs the tool."""

from typing import Any

from ...core.builtin import registry, tool_schema
from ...core.registry import tool_result
from ...errors import InvalidArguments
from ...protocols import TodoItem
from ...types import AgentState, JsonDict, Resources

STATUSES = ("pending", "in_progress", "completed", "cancelled")
MAX_ITEMS = 256
MAX_CONTENT_CHARS = 4_000


def todo(args: JsonDict, *, agent: AgentState, **_: object) -> str:
    if (given := args.get("todos")) is not None:
        ids = [fields["id"] for fields in given]
        doubled = {item_id for item_id in ids if ids.count(item_id) > 1} if len(ids) <= MAX_ITEMS else set()
        if doubled:
            raise InvalidArguments(f"each id may be given once; repeated: {', '.join(sorted(doubled))}")
        if args.get("merge", False):
            agent.todos.merge(given)
        else:
            empty = next((fields["id"] for fields in given if not str(fields.get("content", "")).strip()), None)
            if empty is not None:
                raise InvalidArguments(f"item {empty!r} has no content")
            agent.todos.replace([TodoItem(one["id"], one["content"], one.get("status", "pending")) for one in given])
    items = agent.todos.items()
    counts = {status: sum(item.status == status for item in items) for status in STATUSES}
    listed = [{"id": item.id, "content": item.content, "status": item.status} for item in items]
    return tool_result(todos=listed, counts=counts)


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
    resources=lambda args: Resources(**{"reads" if args.get("todos") is None else "writes": ("agent/todos",)}),
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
