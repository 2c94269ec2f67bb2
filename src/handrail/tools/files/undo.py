"""The tool `undo`: take back what an earlier call of the session has changed."""

from __future__ import annotations

from ...core.builtin import flag, integer, registry, text, tool_schema

registry.register(
    name="undo",
    toolset="file",
    schema=tool_schema(
        "Take back what an earlier call of yours changed on disk: a command, a script, a file tool, or an undo, which is then "
        "redone. Files come back as they were, with their times and modes. What went over the network stays. If "
        "somebody has changed one of the files since, nothing is done, and you are told who.",
        call=integer(
            "The `call` number in that call's result. Default: your last call that changed something.", minimum=1
        ),
        only=text("Only what was changed at this path and below."),
        dry_run=flag("Only say what would be done."),
        force=flag("Also where a file was changed since; what is there now is kept beside it. The user is asked."),
    ),
    handler="handrail.tools.files.undo_call:undo",
    emoji="↩️",
    resources="handrail.tools.files.undo_call:resources",
    actions="handrail.tools.files.undo_call:actions",
    example=["write_file", {}],
)
