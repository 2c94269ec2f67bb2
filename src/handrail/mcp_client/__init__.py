"""The client for MCP servers. Registering their tools is the work of `tools/mcp`.

`server_config` finds the configured servers; `manager` keeps a `connection` per server on one loop, over `stdio` or `http` (with
`oauth`); `tool_listing` reads what a server offers and remembers trusted definitions; `result_conversion` reads the result of a
call; `server_requests` answers what a server asks.
"""
