"""`delegate_task`: delegate tasks to child agents of the agent that runs the tool."""

from __future__ import annotations

from ...core.builtin import registry, text
from ...core.registry import tool_result
from ...errors import InvalidArguments
from ...types import AgentState, JsonDict, ToolContext

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
    "goal": text("What the child is to do. It knows nothing of this conversation.", minLength=1),
    "context": text("What it has to know: paths, findings, limits."),
    "toolsets": {"type": "array", "items": {"type": "string"}, "description": "Toolsets it may use. Default: yours."},
}

registry.register(
    name="delegate_task",
    toolset="delegation",
    schema={
        "description": (
            "Hand tasks to child agents that work beside each other, each with a fresh conversation, and get their "
            "summaries. For parts that can be done apart and would fill your context. A child cannot ask you anything; give "
            "it all it needs."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                **_TASK,
                "tasks": {
                    "type": "array",
                    "maxItems": MAX_TASKS,
                    "items": {
                        "type": "object",
                        "properties": {
                            name: {key: value for key, value in schema.items() if key != "description"}
                            for name, schema in _TASK.items()
                        },
                        "required": ["goal"],
                        "additionalProperties": False,
                    },
                    "description": "Several tasks at once, each with the same fields.",
                },
                "background": {
                    "type": "boolean",
                    "description": "Go on without waiting; you are told when a child has ended.",
                },
                "action": text(
                    "Default start. The others are about children in the background.",
                    enum=["start", "list", "steer", "stop"],
                ),
                "child": text("Which child, for steer and stop."),
                "message": text("What it is to know or do besides, for steer."),
            },
        },
    },
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
