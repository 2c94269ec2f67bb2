"""The tool `search_files`: lines by a regular expression, files by their names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import InvalidArguments, ToolFailed
from ..safe_text import well_formed
from ..types import CancelToken, JsonDict, Resources
from .files.content import missing
from .files.failures import shown
from .files.glob import Glob
from .files.ignore import rules_above
from .files.kinds import special_kind
from .files.query import Found, Hit, Query
from .files.task import files_of, number_argument, path_argument, resource_name, text_argument

from .registry import registry, tool_result

if TYPE_CHECKING:
    from ..protocols import Files
    from ..types import ToolContext

DEFAULT_LIMIT = 50
TIMEOUT = 60.0
# The search ends itself before the call is ended, to say what can be done about it.
SEARCH_SECONDS = TIMEOUT - 10

SCHEMA: JsonDict = {
    "description": (
        "Search a folder, sorted by path. `.gitignore` is respected; hidden files are searched, `.git` is not. Target "
        "`content`: lines that match a regular expression (one line at a time; `(?i)` at its start ignores case). Target "
        "`files`: files by a glob for the name (`*.py`, `*test*`) or for the path (`src/**/*.ts`)."
    ),
    "parameters": {
        "type": "object",
        "properties": {
            "pattern": {"type": "string", "minLength": 1, "description": "Regular expression, or glob for target files."},
            "target": {"type": "string", "enum": ["content", "files"], "default": "content"},
            "path": {"type": "string", "default": ".", "description": "Folder, or for content also one file."},
            "file_glob": {"type": "string", "description": "Only these files: `*.py`, `*.{js,ts}`, `!*.min.js`."},
            "limit": {"type": "integer", "minimum": 1, "maximum": 1000, "default": DEFAULT_LIMIT},
            "offset": {"type": "integer", "minimum": 0, "default": 0, "description": "Results to skip (`next_offset`)."},
            "output_mode": {
                "type": "string",
                "enum": ["content", "files_only", "count"],
                "default": "content",
                "description": "Lines, only the files that have any, or how many each has.",
            },
            "context": {
                "type": "integer",
                "minimum": 0,
                "maximum": 20,
                "default": 0,
                "description": "Lines to show before and after each match.",
            },
        },
        "required": ["pattern"],
    },
}


def search_files(args: JsonDict, *, context: ToolContext | None = None, **_: object) -> str:
    files = files_of(context)
    path = path_argument(args, default=".")
    pattern = text_argument(args, "pattern")
    if not pattern:
        raise InvalidArguments("pattern is empty", argument="pattern")
    limit = number_argument(args, "limit", DEFAULT_LIMIT, least=1)
    offset = number_argument(args, "offset", 0, least=0)
    top, only = _searched(files, path)
    lines_wanted = args.get("output_mode") not in ("files_only", "count")
    query = Query(
        top,
        pattern,
        only,
        Glob(text_argument(args, "file_glob")) if args.get("file_glob") else None,
        above=rules_above(files, top),
        first=offset,
        last=offset + limit if lines_wanted else offset,
        context=number_argument(args, "context", 0, least=0),
        seconds=SEARCH_SECONDS,
        cancel=context.cancel if context else CancelToken(),
    )
    prefix = "" if only is not None or path in (".", "./") else path.rstrip("/").removeprefix("./") + "/"
    if args.get("target") == "files":
        return tool_result(_files_result(files, query, _named(pattern), prefix, limit))
    ...
