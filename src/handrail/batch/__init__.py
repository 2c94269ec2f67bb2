"""Many agent sessions from a file of tasks, on this machine or a cluster. `driver` runs a batch: it owns the ledger, which
`host` offers to the workers, and starts them by an engine. A `worker` pulls leases and runs an `attempt` per session, whose
journal sees to it that another attempt repeats no effect."""
