"""File tools: one file each declares them, `calls` runs them; `patching/` and `searching/` run two of them."""
