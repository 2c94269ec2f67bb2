"""Tools for images, speech and mixtures of models: one file per tool; the other modules run their calls."""
