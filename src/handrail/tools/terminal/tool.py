"""The tools that run commands: `terminal`, and `process` for what runs in the background."""

from ...core.builtin import flag, integer, number, registry, text, texts, tool_schema
from ...types import JsonDict

registry.register(
    name="process",
    toolset="terminal",
    schema=tool_schema(
        "Manage background processes: list them, poll one (status and latest output), read its log, "
        "wait for it, kill it, or give it input. Input is write (text and keys as they are), submit (text and Enter) "
        "or close (end of input); the answer shows what the program did with it. A program on a terminal (pty) "
        "shows its screen; waiting_for_input is true when it reads and has nothing to read.",
        ("action",),
        action=text(
            "What to do. All but list need session_id.",
            enum=["list", "poll", "log", "wait", "kill", "write", "submit", "close", "resize"],
        ),
        session_id=text("Which process (proc_...)."),
        data=text("Text for write or submit."),
        keys=texts(
            "Keys for write or submit, typed after data: ENTER, TAB, ESC, UP, DOWN, LEFT, RIGHT, HOME, END, "
            "PAGEUP, PAGEDOWN, BACKSPACE, DELETE, F1 to F12, C-c (Control), M-x (Alt), S-TAB (Shift)."
        ),
        timeout=number(
            "Seconds: for wait at most so many (60, up to 600); after input for the program to take it (1).", minimum=0
        ),
        offset=integer("First line of the log, or with a pattern the first match. Default: the end.", minimum=1),
        limit=integer("Lines or matches of the log (200).", minimum=1, maximum=5000),
        pattern=text("Only lines of the log that match this expression."),
        all={"type": "boolean", "description": "List those that have ended, too."},
        rows=integer("For resize.", minimum=2, maximum=500),
        columns=integer("For resize.", minimum=2, maximum=500),
    ),
    handler="handrail.tools.terminal.process_call:process",
    emoji="⚙️",
    timeout=630,  # the longest wait, and a margin
    resources="handrail.tools.terminal.process_call:resources",
    actions="handrail.tools.terminal.process_call:actions",
    example=[
        "terminal",
        {"action": "poll", "session_id": "$session_id"},
        {"action": "kill", "session_id": "$session_id"},
    ],
)
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
    check_fn="handrail.environments.task_settings:check_default",
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
