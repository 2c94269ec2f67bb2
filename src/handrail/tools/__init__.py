"""The built-in tools: one folder per family, one file per tool. A new file that calls `registry.register` is found by itself."""
