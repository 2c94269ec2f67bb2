"""Answer a call of `send_message`."""

import asyncio
import posixpath
from functools import partial

from ...base.workers import pool
from ...core.outcome import tool_result
from ...errors import ConfigError, InvalidArguments, ToolFailed
from ...files.content import read_bytes
from ...files.task_arguments import files_of, read_name, text_argument
from ...platforms.base import Attachment, OutgoingMessage
from ...platforms.table import target_of
from ...protocols import Action, ActionKind, Files
from ...types import JsonDict, Resources, ToolContext

MAX_TEXT_CHARS = 100_000


async def send_message(args: JsonDict, *, context: ToolContext, **_: object) -> str:
    """The answer of the tool: where the message went, and what the service says of it."""
    settings = context.config.messages
    name, text = text_argument(args, "target"), text_argument(args, "message")
    try:
        target = target_of(name, settings.targets)
    except ConfigError as error:
        raise ToolFailed(f"the target {name!r} is not configured well: {error}; tell the user") from None
    if not text.strip():
        raise InvalidArguments("the message is empty", argument="message")
    if len(text) > MAX_TEXT_CHARS:
        raise InvalidArguments(
            f"the message has {len(text):,} characters, and {MAX_TEXT_CHARS:,} at most are sent; "
            "write it to a file and attach that",
            argument="message",
        )
    paths = args.get("attachments") or []
    if paths and not target.takes_files:
        raise ToolFailed(f"{name!r} takes no files; send a message that says where they are")
    if (why := target.check()) is not None:
        raise ToolFailed(f"nothing can be sent to {name!r} now: {why}; tell the user")
    work = pool.submit(_attachments, files_of(context), paths, settings.max_attachment_bytes)
    message = OutgoingMessage(text, text_argument(args, "subject", ""), await asyncio.wrap_future(work))
    context.progress(f"sending to {name}")
    return tool_result({"sent": True, "target": name, **await target.send(message)})


def resources(args: JsonDict, context: ToolContext) -> Resources:
    attached = tuple(read_name(path, context) for path in args.get("attachments", ()))
    # Messages to one target go one after the other, so they arrive in the model's order.
    return Resources(reads=attached, writes=(f"message target {str(args.get('target')).replace('/', '_')}",))


def actions(args: JsonDict, _: ToolContext) -> list[Action]:
    files = "".join(f"\nwith {path}" for path in args.get("attachments", ()))
    return [Action(ActionKind.TOOL, f"send_message to {args['target']}: {args['message']}{files}")]


def _attachments(files: Files, paths: list[str], max_bytes: int) -> tuple[Attachment, ...]:
    read = partial(read_bytes, files, max_bytes=max_bytes)
    return tuple(Attachment(posixpath.basename(path) or "file", read(path)) for path in paths)
