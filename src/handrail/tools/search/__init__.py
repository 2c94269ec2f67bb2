"""Find a tool among many by what it does."""
