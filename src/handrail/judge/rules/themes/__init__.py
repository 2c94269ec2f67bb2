"""The rules, one module per theme with `RULES`. A new rule is one `Rule(...)` here; a new theme is listed in `rulebook.THEMES`."""
