"""The tool `terminal`: a shell command in the task's environment."""

from ...core.builtin import flag, number, registry, text, texts, tool_schema
from ...types import JsonDict

SCHEMA: JsonDict = tool_schema(
    "Run a shell command (bash). The shell is the same in every call: the working directory, variables, functions and "
    "aliases stay. Gives `output` (stdout and stderr) and `exit_code`; of a long output the head and the tail. A "
    "command reads no input: use options such as -y, or pty. A server, or what takes long, runs with background. For "
    "files there are better tools: `read_file`, `write_file`, `patch`, `search_files`.",
    ("command",),
    command=text("The command line, or several."),
    timeout=number("Seconds after which it is ended, as far as the user allows.", exclusiveMinimum=0),
    workdir=text("Directory for this command alone. The shell stays where it is."),
    background=flag("Start it and return immediately, with a session_id for `process`."),
    pty=flag(
        "Run it on a terminal of its own, for programs that ask or draw. Returns when it ends or waits for input; "
        "`process` answers it."
    ),
    separate_stderr=flag("Give stderr apart, as `stderr`."),
    notify_on_complete=flag("With background: you are told when it has ended."),
    watch_patterns=texts("With background: you are told when it prints a line with one of these in it.", min_chars=1),
)


registry.register(
    name="terminal",
    toolset="terminal",
    schema=SCHEMA,
    handler="handrail.tools.terminal.terminal_call:terminal",
    check_fn="handrail.environments.backend_table:check_default",
    emoji="💻",
    # The output is bounded while it arrives, and all of it stored; the command's own timeout is the call's.
    max_result_size_chars=float("inf"),
    resources="handrail.tools.terminal.terminal_call:resources",
    actions="handrail.tools.terminal.terminal_call:actions",
    waits=True,
    toolset_description="run commands and manage processes",
    example=[
        {"command": "git log --oneline | head -5", "workdir": "/tmp", "timeout": 30},
        {"command": "python3 -m http.server --bind 127.0.0.1 0", "background": True},
    ],
)
