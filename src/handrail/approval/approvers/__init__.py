"""Who may approve.

`basic`: `PolicyApprover` (denies), `QueueApprover` (waits for the store), `CallbackApprover` (sends the request somewhere) and
`ChainApprover` (tries several). `terminal`: `TerminalApprover`, with its text in `prompt`. `smart`: `SmartApprover`, which asks
a model.
"""
