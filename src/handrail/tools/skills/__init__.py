"""Skills: written know-how that models read. `tool` declares the tools, `calls` runs them and changes the user's own skills.
`library` finds the skills, inspects them, decides which of them a model may see, and lists those for the system prompt."""
