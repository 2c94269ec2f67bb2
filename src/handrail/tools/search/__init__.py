"""Tools that find and call tools which the model's list has no room for: `tool` declares them, `calls` runs them."""
