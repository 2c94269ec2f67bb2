"""The tool `delegate_task`: give work to child agents."""

from ...core.builtin import registry, text, texts, tool_schema
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
