"""File tools: one file each declares them, `*_call` modules run them; `patching/` and `searching/` are two of them."""
