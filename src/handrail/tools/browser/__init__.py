"""Tools that drive a browser. `tool` declares them, `calls` runs them. A call uses its task's session in the runtime's browser
(`browsers`), which reaches the network only through a proxy of ours. `actions` are what a `session` can do."""
