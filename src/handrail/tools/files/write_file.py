"""The tool `write_file`: replace the content of a file."""

from ...core.builtin import registry, text, tool_schema

_PATH = text("Absolute, relative to the working directory, or from ~.")

registry.register(
    name="write_file",
    toolset="file",
    schema=tool_schema(
        "Write a whole file, replacing what was there; missing folders are made. An existing file keeps its mode, "
        "its encoding and its CRLF line ends. Refused when the file changed since you read it.",
        ("path", "content"),
        path=_PATH,
        content=text("The complete new content."),
    ),
    handler="handrail.tools.files.calls:write_file",
    emoji="✍️",
    resources="handrail.tools.files.calls:write_file_resources",
    actions="handrail.tools.files.calls:write_file_actions",
    toolset_description="read, write, patch and search files",
    example={"path": "stairs.py", "content": "HEIGHT = 80\n\n\ndef steps(height):\n    return height // 18\n"},
)
