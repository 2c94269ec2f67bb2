"""What can be set in config.yaml, as frozen dataclasses without I/O: how it is loaded is in `handrail.config`.

`schema.Config` is the whole; its sections are in `sections` (the runtime, with how a setting is declared) and `services` (models,
with the table of providers, MCP, chats, the network).
"""
