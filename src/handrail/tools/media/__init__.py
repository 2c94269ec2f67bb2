"""Tools for images, speech and mixtures of models, one file each; `calls` runs them."""
