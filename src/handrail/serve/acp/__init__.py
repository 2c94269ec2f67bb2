"""Handrail as an agent in an editor, over the Agent Client Protocol.

`agent_server` answers the editor's requests, `session` is one conversation with its own runtime, `updates` says what the editor
shows of it, `permissions` asks its user, `editor_environment` lets the tools use the editor's files and terminals, and `link` is
the way to the editor from any thread.
"""
