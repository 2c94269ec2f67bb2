"""The tool `search_files`: find lines or files."""

from ...core.builtin import integer, registry, text, tool_schema

registry.register(
    name="search_files",
    toolset="file",
    schema=tool_schema(
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
    handler="handrail.tools.files.searching.search_call:search_files",
    emoji="🔎",
    read_only=True,
    resources="handrail.tools.files.searching.search_call:resources",
    actions="handrail.tools.files.searching.search_call:actions",
    timeout=60,
    example=["write_file", {"pattern": "def \\w+", "file_glob": "*.py"}],
)
