"""Tools that run commands: `terminal`, and `process` for what runs in the background."""
