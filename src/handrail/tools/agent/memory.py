"""The tool `memory`: notes that outlive a session."""

from ...core.builtin import registry, text, tool_schema
from ...core.registry import tool_result
from ...errors import InvalidArguments
from ...types import AgentState, JsonDict, Resources


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
