"""File tools: one file per tool; `*_call` modules run them, with `patching/` and `searching/` behind two of them."""
