"""Tools for the web: `web_search` (backends in `search/`) and `web_extract` (`extract` for pages, `documents` for files)."""
