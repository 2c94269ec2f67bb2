"""A call's files, checked arguments, and the actions and resource names of its paths."""

import os
from collections.abc import Callable, Iterable

from ..base.safe_text import well_formed
from ..errors import InvalidArguments, ToolFailed
from ..protocols import Action, ActionKind, Files, Preview
from ..types import JsonDict, ToolContext
from .failures import shown
from .local import LocalFiles, check_path


def files_of(context: ToolContext) -> Files:
    """The task's files; without a task, those of this process's working directory."""
    return context.files if context.files is not None else LocalFiles()


def written_files_of(context: ToolContext) -> Files:
    """The same for a tool that writes: what is there before is kept, so that the call can be taken back."""
    files = files_of(context)
    return files if context.effects is None else context.effects.journaled(files)


def path_argument(args: JsonDict, name: str = "path", default: str | None = None) -> str:
    path = text_argument(args, name, default)
    check_path(path)
    return path


def text_argument(args: JsonDict, name: str, default: str | None = None) -> str:
    """A text as the model gave it. Lone surrogates are refused: no file and no answer can carry them."""
    value = args.get(name)
    if value is None:
        value = default
    if not isinstance(value, str):
        raise InvalidArguments(f"{name} is missing" if value is None else f"{name} must be a string", argument=name)
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidArguments(
            f"{name} holds a lone surrogate, U+{ord(value[error.start]):04X}, at position {error.start}; "
            f"it is half of a character: send the complete one",
            argument=name,
        ) from None
    return value


def number_argument(args: JsonDict, name: str, default: int, *, least: int) -> int:
    value = args.get(name)
    if value is None:
        return default
    if not isinstance(value, int) or value < least:
        came = shown(repr(value))
        raise InvalidArguments(f"{name} must be a whole number of at least {least}, not {came}", argument=name)
    return value


def write_actions(paths: Iterable[str], context: ToolContext, preview: Callable[[], Preview]) -> list[Action]:
    """The actions for files that will be written or removed, with their resolved paths and what would be written."""
    return _actions(ActionKind.FILE_WRITE, paths, context, preview)


def read_actions(paths: Iterable[str], context: ToolContext) -> list[Action]:
    """The actions for files that will be read or searched, with their resolved paths."""
    return _actions(ActionKind.FILE_READ, paths, context, None)


def _actions(
    kind: ActionKind, paths: Iterable[str], context: ToolContext, preview: Callable[[], Preview] | None
) -> list[Action]:
    files = files_of(context)
    resolved = [files.resolve(path) for path in paths]
    if context.environments is None:
        return [Action(kind, files.host_path(path) or path, preview=preview) for path in resolved]
    environment = context.environments.of(context.task_id)
    cwd = context.environments.cwd(context.task_id)
    project = files.resolve(cwd) if cwd and kind is ActionKind.FILE_WRITE else ""
    return [
        Action(
            kind,
            files.host_path(path) or path,
            environment=environment.name,
            isolated=environment.isolated,
            reaches_host=environment.reaches_host,
            details={"project": files.host_path(project) or project} if project else {},
            preview=preview,
        )
        for path in resolved
    ]


def judged_path(path: str, context: ToolContext) -> str:
    """The resolved path of a file that will be written. Raises ToolFailed if a link has changed since the gate judged it."""
    files = files_of(context)
    resolved = files.resolve(path)
    if context.judged_paths and files.host_path(resolved) not in (None, *context.judged_paths):
        why = "leads elsewhere than when it was checked: a link was changed; nothing was written"
        raise ToolFailed(f"{shown(path)} {why}")
    return resolved


def save(data: bytes, path: str, context: ToolContext) -> str:
    """Write into the task's files and return the resolved path."""
    resolved = judged_path(path, context)
    written_files_of(context).write(resolved, data)
    return well_formed(resolved)


def everything(context: ToolContext) -> str:
    """The resource name of all files of the task: the root of this machine, or a root of the task's own."""
    environments = context.environments
    if environments is None or environments.has_host_paths(context.task_id):
        return "/"
    return f"files of {(context.task_id or '').replace('/', '_')}"


def read_name(path: object, context: ToolContext) -> str:
    """The resource name of a path that is read. An unknown path overlaps with everything."""
    top = everything(context)
    if top != "/":
        # Only the environment knows its links, so a write there overlaps with every read there.
        return f"{top}/{path}"
    return _host_name(path, context)


def written_name(path: object, context: ToolContext) -> str:
    top = everything(context)
    return _host_name(path, context) if top == "/" else top


def _host_name(path: object, context: ToolContext) -> str:
    if not isinstance(path, str) or not path:
        return "/"
    cwd = context.environments.cwd(context.task_id) if context.environments is not None else ""
    try:
        return os.path.realpath(os.path.join(cwd, os.path.expanduser(path)))
    except (OSError, ValueError):
        return "/"
