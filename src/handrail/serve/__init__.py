"""`handrail serve`: tools, agents and approvals over HTTP, with a web console, chats and MCP.

`server` runs `app`, which checks requests (`access_control`, `tokens`) and routes them to `http`, `mcp` and the console
(`static`). `shared_state` is what they share: the app, the `event_bus`, `live_calls`, open questions and `agent_turns`.
`gateway` serves chats, `server` also runs jobs.
"""
