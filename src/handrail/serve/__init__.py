"""Give the tools to others: each folder is one way for them to come in."""
