"""The client for MCP servers. Registering their tools is the work of `tools/mcp`.

`server_config` finds the configured servers; `manager` keeps a `connection` per server on one loop, over `stdio` or `http` (with
`oauth`); `tool_listing` reads what a server offers, `pins` remembers trusted definitions; `tool_calls` and `result_conversion`
are a call and its result; `server_requests` and `form` answer what a server asks; `watchdog` ends servers if we are killed.
"""
