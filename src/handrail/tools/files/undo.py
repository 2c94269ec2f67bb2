"""The tool `undo`: take back what a call changed on disk."""

from ...core.builtin import flag, integer, registry, text, tool_schema

registry.register(
    name="undo",
    toolset="file",
    schema=tool_schema(
        "Take back what a call of yours changed on disk, also an undo. Refused if others changed it since.",
        call=integer("Its `call` number; default: the last.", minimum=1),
        only=text("Only what is at this path and below."),
        force=flag("Also then: what is there now is kept beside it."),
    ),
    handler="handrail.tools.files.calls:undo",
    emoji="↩️",
    resources="handrail.tools.files.calls:undo_resources",
    actions="handrail.tools.files.calls:undo_actions",
    example=["write_file", {}],
)
