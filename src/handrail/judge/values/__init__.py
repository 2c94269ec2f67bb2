"""What words, paths and results are: `word_values` (text that may be partly unknown), `paths` and `path_lists` (classes of
paths), `assessment` (the result)."""
