"""Skills: written know-how that models read. `tool` declares the tools, and:

`sources` finds the folders, `content` reads and inspects a skill's files, `library` decides which skills a
model may see, and lists them for the system prompt, `edits` changes the user's own, `calls` runs the tools.
"""
