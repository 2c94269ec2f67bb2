"""File tools: `tool` and `read_result` declare them, `*_call` modules run them; `patching/` and `searching/` are two of them."""
