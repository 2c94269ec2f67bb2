"""Messages to people and services: one file a kind of target in `kinds`."""
