"""File tools: `tool` declares them, `calls` runs them; `patching/` and `searching/` run two of them."""
