"""The tool `send_message`: `tool` declares it, `delivery` sends."""
