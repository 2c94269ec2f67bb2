"""The tool `send_message`: write to somebody whom the operator has named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...config import load_config
from ...core.builtin import registry
from ...protocols import Action, ActionKind
from ...types import JsonDict, Resources, Unavailable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...types import ToolContext

SCHEMA: JsonDict = {
    "description": "Send a message to one of the configured targets.",
    "parameters": {
        "type": "object",
        "properties": {
            "target": {"type": "string", "description": "The target's name."},
            "message": {"type": "string", "description": "The text, as the reader is to see it."},
            "subject": {"type": "string", "description": "A line above it; the subject of an email."},
            "attachments": {
                "type": "array",
                "items": {"type": "string"},
                "maxItems": 10,
                "description": "Paths of files to send along.",
            },
        },
        "required": ["target", "message"],
    },
}


async def send_message(args: JsonDict, *, context: ToolContext | None = None, **_: object) -> str:
    from .delivery import send

    return await send(args, context)


def _check() -> object:
    targets = load_config().messages.targets
    if not targets:
        return Unavailable("no target is configured", "add one under messages.targets in config.yaml")
    from ...platforms.table import first_usable

    return first_usable(targets)


def _fields() -> JsonDict:
    """The names that can be written to, for the model."""
    targets = sorted(load_config().messages.targets.items())
    if not targets:
        return {}
    named = ", ".join(f"{name} ({settings.get('kind')})" for name, settings in targets)
    return {"description": f"Send a message. Targets: {named}."}


def _resources(args: JsonDict, context: ToolContext | None = None) -> Resources:
    from ...files.task_arguments import read_name

    attached = tuple(read_name(path, context) for path in args.get("attachments", ()))
    # One after the other to the same target, so that they arrive in the model's order.
    return Resources(reads=attached, writes=(f"message target {str(args.get('target')).replace('/', '_')}",))


def _actions(args: JsonDict, _: ToolContext) -> Sequence[Action]:
    files = "".join(f"\nwith {path}" for path in args.get("attachments", ()))
    return [Action(ActionKind.TOOL, f"send_message to {args['target']}: {args['message']}{files}")]


registry.register(
    name="send_message",
    toolset="messaging",
    schema=SCHEMA,
    handler=send_message,
    check_fn=_check,
    dynamic_schema_overrides=_fields,
    is_async=True,
    emoji="📨",
    timeout=120,
    resources=_resources,
    actions=_actions,
)
