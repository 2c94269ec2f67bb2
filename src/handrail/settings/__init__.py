"""What can be set in config.yaml, as frozen dataclasses without I/O: how it is loaded is in `handrail.config`.

`schema.Config` is the whole; its sections are in `sections` (the runtime), `services` (models, MCP, chats), `web` and `media`,
written with `options`. `model_providers` is the table of model providers.
"""
