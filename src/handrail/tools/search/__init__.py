"""Tools that find and call tools which the model's list has no room for; `calls` runs them."""
