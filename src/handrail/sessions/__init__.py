"""A caller's session: `session` has the object, `formats` writes answers as each provider wants them, `own_tools` adds MCP
servers for one session alone."""
