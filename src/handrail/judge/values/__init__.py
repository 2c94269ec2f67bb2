"""What words, paths and results are: `word_values` (text that may be partly unknown), `paths` (classes of paths),
`assessment` (the result)."""
