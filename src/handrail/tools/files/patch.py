"""The tool `patch`: change parts of files."""

from ...core.builtin import flag, registry, text, tool_schema

registry.register(
    name="patch",
    toolset="file",
    schema=tool_schema(
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
    handler="handrail.tools.files.patching.patch_call:patch",
    emoji="🩹",
    resources="handrail.tools.files.patching.patch_call:resources",
    actions="handrail.tools.files.patching.patch_call:actions",
    example=["write_file", {"path": "stairs.py", "old_string": "HEIGHT = 80", "new_string": "HEIGHT = 90"}],
)
