"""Messages to people and services: `tool` is `send_message`, `delivery` runs it. The platforms are in `platforms`."""
