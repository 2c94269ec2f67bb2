"""HTTP: `fetch` for any URL, guarded by `url_guard` through `transport`; `http_client` for configured servers."""
