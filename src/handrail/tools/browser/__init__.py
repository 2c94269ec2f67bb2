"""Tools that drive a browser. `tool` declares them, `calls` runs them.

A call uses its task's session (`task_session`) in the runtime's browser (`browsers`, found by `installed_browsers`, with a
`profile_dir`), which reaches the network only through `proxy`. `actions`, `snapshots`, `downloads` and `devtools` are what a
`session` can do.
"""
