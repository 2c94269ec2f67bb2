"""Tools for images, speech and mixtures of models: `tool` declares them, `calls` runs them."""
