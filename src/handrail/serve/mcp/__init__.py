"""The MCP server: `server` answers clients, over `stdio` or `http`, or mounted (`mount`) in `handrail serve`."""
