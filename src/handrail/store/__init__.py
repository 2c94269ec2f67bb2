"""What survives a restart, each in its own store.

`database` is one SQLite file that threads and processes share; on it are `sessions` (with `search` and
`export`), `approvals` (with `grants` and `decisions`), `jobs` and `rollouts`. `history` is a log of actions, `processes` and
`results` are folders of files.
"""
