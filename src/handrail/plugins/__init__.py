"""What a plugin can do, and the manager that lets it."""
