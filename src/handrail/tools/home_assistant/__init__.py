"""Tools for Home Assistant: `tool` declares them, `calls` runs them."""
