"""The kinds of targets, each in a file of its name."""
