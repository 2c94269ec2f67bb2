"""The rules by theme; a module has `RULES`, and its docstring names the theme."""
