"""What commands reach over the network, and the keys that they use without seeing them.

`policy` decides about a host; `questions` asks about it through the gate; `proxy` is the way out, with `http_messages`
and `keys` where a key is put in, in TLS of a `certificates` authority that only the task trusts. `networks` has one of each per
task.
"""
