"""Many agent sessions from a file of tasks, on this machine or a cluster.

`driver` runs a batch: it owns the ledger, which `host` offers to the workers over a `link`; an engine of `engines` starts them.
A `worker` pulls leases and runs an `attempt` per session; `journal` sees to it that another attempt repeats no effect.
"""
