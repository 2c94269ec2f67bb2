"""Skills: written know-how that models read. One file per tool, and:

`content` reads and inspects a skill's files, `library` finds the skills, decides which of them a model may see, and lists those
for the system prompt, `edits` changes the user's own, `calls` runs the tools.
"""
