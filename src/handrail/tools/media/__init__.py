"""Tools for images, speech and mixtures of models: `tool` declares them, the other modules run their calls."""
