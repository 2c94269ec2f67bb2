"""Tools for the web: `web_search` (by `search_services`) and `web_extract` (by `extract`)."""
