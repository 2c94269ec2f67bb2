"""Tools that run commands: `tool` declares them, `terminal_call` and `process_call` run them."""
