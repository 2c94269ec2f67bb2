"""The tool `search_files`: lines by a regular expression, files by their names."""

from __future__ import annotations

from ...core.builtin import registry
from ...types import JsonDict

SCHEMA: JsonDict = {
    "description": (
        "Search a folder; results are sorted by path. `.gitignore` is respected, hidden files are searched, `.git` is "
        "not. Target `content`: lines that match a regular expression; `(?i)` at its start ignores case. Target "
        "`files`: files by a glob for the name (`*.py`, `*test*`) or for the path (`src/**/*.ts`)."
    ),
    "parameters": {
        "type": "object",
        "properties": {
            "pattern": {
                "type": "string",
                "minLength": 1,
                "description": "A regular expression, matched line by line; for files a glob.",
            },
            "target": {"type": "string", "enum": ["content", "files"], "default": "content"},
            "path": {"type": "string", "default": ".", "description": "A folder; for content also one file."},
            "file_glob": {"type": "string", "description": "Only these files: `*.py`, `*.{js,ts}`, `!*.min.js`."},
            "limit": {
                "type": "integer",
                "minimum": 1,
                "maximum": 1000,
                "default": 50,
                "description": "Results.",
            },
            "offset": {"type": "integer", "minimum": 0, "default": 0, "description": "Results to skip."},
            "output_mode": {
                "type": "string",
                "enum": ["content", "files_only", "count"],
                "default": "content",
                "description": "The lines, only the files that have some, or how many each has.",
            },
            "context": {
                "type": "integer",
                "minimum": 0,
                "maximum": 20,
                "default": 0,
                "description": "Lines before and after each match.",
            },
        },
        "required": ["pattern"],
    },
}


registry.register(
    name="search_files",
    toolset="file",
    schema=SCHEMA,
    handler="handrail.tools.files.searching.search_call:search_files",
    emoji="🔎",
    read_only=True,
    resources="handrail.tools.files.searching.search_call:resources",
    actions="handrail.tools.files.searching.search_call:actions",
    timeout=60,
    example=["write_file", {"pattern": "def \\w+", "file_glob": "*.py"}],
)
