"""How `search_files` finds lines and names, with ripgrep or without, to the same result."""
