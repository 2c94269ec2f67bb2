"""Skills: written know-how that models read. One file per tool, and:

`library` finds the skills, inspects them, decides which of them a model may see, and lists those for the system prompt; `calls`
runs the tools and changes the user's own skills.
"""
