"""Models that an agent can ask: one file a way to reach them."""
