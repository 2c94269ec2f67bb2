"""Tools for the web: `tool` declares them, `calls` runs them, `extract` reads pages."""
