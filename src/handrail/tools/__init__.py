"""The built-in tools: one folder per family, with its tools in `tool.py` or one file per tool. A new file that calls
`registry.register` is found by itself."""
