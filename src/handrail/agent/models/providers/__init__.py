"""The model providers, one file each, with the provider's name. Its `MODEL` makes a model from a name and settings."""
