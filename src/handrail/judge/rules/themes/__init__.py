"""The rules, one module per theme with `RULES`. A new rule is one `Rule(...)`; a new theme is found by its file."""
