"""Tools for images, speech and mixtures of models, one file each; `vision`, `generation` and `mixture` run their calls."""
