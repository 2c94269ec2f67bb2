"""The agent's own state and, on top of it, the loop."""
