"""The tool `read_file`: a page of a text file."""

from __future__ import annotations

from ...core.builtin import registry
from ...types import JsonDict

SCHEMA: JsonDict = {
    "description": (
        "Read a text file by lines. Gives `content` as it is in the file, the lines it covers, `total_lines`, and "
        "`next_offset` when there is more. Lines over 2,000 characters are cut, with a notice."
    ),
    "parameters": {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "Absolute, relative to the working directory, or from ~."},
            "offset": {"type": "integer", "minimum": 1, "default": 1, "description": "First line, counted from 1."},
            "limit": {"type": "integer", "minimum": 1, "default": 2000, "description": "How many lines."},
            "column": {
                "type": "integer",
                "minimum": 1,
                "default": 1,
                "description": "First character of each line, to go on reading a line that was cut.",
            },
        },
        "required": ["path"],
    },
}


registry.register(
    name="read_file",
    toolset="file",
    schema=SCHEMA,
    handler="handrail.tools.files.read_call:read_file",
    emoji="📖",
    # A page ends at a line end; a second cut would only hide where it can be continued.
    max_result_size_chars=float("inf"),
    read_only=True,
    resources="handrail.tools.files.read_call:resources",
    actions="handrail.tools.files.read_call:actions",
    example=["write_file", {"path": "stairs.py", "offset": 4, "limit": 2}],
)
