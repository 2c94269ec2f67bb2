"""The tool `process`: manage background processes and answer their prompts."""

from ...core.builtin import family, integer, number, registry, text, texts

registry.register(
    **family("terminal", "handrail.tools.terminal.process_call")(
        "process",
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
