"""Tools for Home Assistant: one file per tool; `queries` and `service_calls` run them through the `client`.

`availability` is their check, `safe_services` says which services need no approval.
"""
