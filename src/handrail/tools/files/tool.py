"""The tools of the toolset `file`: read, write, patch and search files, and take back what a call changed."""

from ...core.builtin import family, flag, integer, registry, text

_PATCH = "handrail.tools.files.patching.patch_call"
_SEARCH = "handrail.tools.files.searching.search_call"
_tool = family("file", "handrail.tools.files.calls")
_PATH = text("Absolute, relative to the working directory, or from ~.")
registry.register(
    **family("file", _PATCH)(
        "patch",
        "Change parts of files. Mode `replace`: put new_string for old_string in path; old_string must be there once, "
        "unless replace_all. Mode `patch`: several changes, in several files, all or none. Small differences in "
        "whitespace and quotes are forgiven. Gives the diff of what was changed.",
        mode=text("How the change is given.", enum=["replace", "patch"], default="replace"),
        path=text("The file (mode replace)."),
        old_string=text("Text to replace, with enough around it to be unique."),
        new_string=text("What replaces it; empty deletes."),
        replace_all=flag("Replace every occurrence."),
        patch=text(
            "A unified diff, or this form (mode patch):\n*** Begin Patch\n*** Update File: a.py\n@@ def f():\n"
            " context\n-old line\n+new line\n*** Add File: b.py\n+line\n*** Delete File: c.py\n*** End Patch\n"
            "`*** Move to: d.py` after an Update line renames. Three lines of context around a change are best."
        ),
    ),
    emoji="🩹",
    resources=f"{_PATCH}:resources",
    actions=f"{_PATCH}:actions",
    example=["write_file", {"path": "stairs.py", "old_string": "HEIGHT = 80", "new_string": "HEIGHT = 90"}],
)
registry.register(
    **_tool(
        "read_file",
        "Read a text file by lines. Gives `content` as it is in the file, the lines it covers, `total_lines`, and "
        "`next_offset` when there is more. Lines over 2,000 characters are cut, with a notice.",
        ("path",),
        path=_PATH,
        offset=integer("First line, counted from 1.", minimum=1, default=1),
        limit=integer("How many lines.", minimum=1, default=2000),
        column=integer("First character of each line, to go on reading a line that was cut.", minimum=1, default=1),
    ),
    emoji="📖",
    # A page ends at a line end; a second cut would only hide where it can be continued.
    max_result_size_chars=float("inf"),
    read_only=True,
    resources="handrail.tools.files.calls:read_file_resources",
    actions="handrail.tools.files.calls:read_file_actions",
    example=["write_file", {"path": "stairs.py", "offset": 4, "limit": 2}],
)
registry.register(
    **family("file", _SEARCH)(
        "search_files",
        "Search a folder; results are sorted by path. `.gitignore` is respected, hidden files are searched, `.git` is "
        "not. Target `content`: lines that match a regular expression; `(?i)` at its start ignores case. Target "
        "`files`: files by a glob for the name (`*.py`, `*test*`) or for the path (`src/**/*.ts`).",
        ("pattern",),
        pattern=text("A regular expression, matched line by line; for files a glob.", minLength=1),
        target=text("What to search.", enum=["content", "files"], default="content"),
        path=text("A folder; for content also one file.", default="."),
        file_glob=text("Only these files: `*.py`, `*.{js,ts}`, `!*.min.js`."),
        limit=integer("Results.", minimum=1, maximum=1000, default=50),
        offset=integer("Results to skip.", minimum=0, default=0),
        output_mode=text(
            "The lines, only the files that have some, or how many each has.",
            enum=["content", "files_only", "count"],
            default="content",
        ),
        context=integer("Lines before and after each match.", minimum=0, maximum=20, default=0),
    ),
    emoji="🔎",
    read_only=True,
    resources=f"{_SEARCH}:resources",
    actions=f"{_SEARCH}:actions",
    timeout=60,
    example=["write_file", {"pattern": "def \\w+", "file_glob": "*.py"}],
)
registry.register(
    **_tool(
        "undo",
        "Take back what a call of yours changed on disk, also an undo. Refused if others changed it since.",
        call=integer("Its `call` number; default: the last.", minimum=1),
        only=text("Only what is at this path and below."),
        force=flag("Also then: what is there now is kept beside it."),
    ),
    emoji="↩️",
    resources="handrail.tools.files.calls:undo_resources",
    actions="handrail.tools.files.calls:undo_actions",
    example=["write_file", {}],
)
registry.register(
    **_tool(
        "write_file",
        "Write a whole file, replacing what was there; missing folders are made. An existing file keeps its mode, "
        "its encoding and its CRLF line ends. Refused when the file changed since you read it.",
        ("path", "content"),
        path=_PATH,
        content=text("The complete new content."),
    ),
    emoji="✍️",
    resources="handrail.tools.files.calls:write_file_resources",
    actions="handrail.tools.files.calls:write_file_actions",
    toolset_description="read, write, patch and search files",
    example={"path": "stairs.py", "content": "HEIGHT = 80\n\n\ndef steps(height):\n    return height // 18\n"},
)
