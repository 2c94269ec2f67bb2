"""Skills: written know-how that models read. One file per tool, and:

`sources` finds the folders, `format` reads SKILL.md, `content` inspects a skill's files, `library` decides which skills a
model may see, `edits` changes the user's own, `prompt` lists them for the system prompt, `calls` runs the tools.
"""
