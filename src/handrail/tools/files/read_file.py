"""The tool `read_file`: read a text file by lines."""

from ...core.builtin import integer, registry, text, tool_schema

_PATH = text("Absolute, relative to the working directory, or from ~.")

registry.register(
    name="read_file",
    toolset="file",
    schema=tool_schema(
        "Read a text file by lines. Gives `content` as it is in the file, the lines it covers, `total_lines`, and "
        "`next_offset` when there is more. Lines over 2,000 characters are cut, with a notice.",
        ("path",),
        path=_PATH,
        offset=integer("First line, counted from 1.", minimum=1, default=1),
        limit=integer("How many lines.", minimum=1, default=2000),
        column=integer("First character of each line, to go on reading a line that was cut.", minimum=1, default=1),
    ),
    handler="handrail.tools.files.calls:read_file",
    emoji="📖",
    # A page ends at a line end; a second cut would only hide where it can be continued.
    max_result_size_chars=float("inf"),
    read_only=True,
    resources="handrail.tools.files.calls:read_file_resources",
    actions="handrail.tools.files.calls:read_file_actions",
    example=["write_file", {"path": "stairs.py", "offset": 4, "limit": 2}],
)
