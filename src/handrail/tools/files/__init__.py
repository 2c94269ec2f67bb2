"""File tools: one file per tool; `*_call` modules run them. `patching/` and `searching/` are behind `patch` and `search_files`."""
