"""Tools for the web: `web_search` and `web_extract`; `calls` runs them, `extract` reads pages."""
