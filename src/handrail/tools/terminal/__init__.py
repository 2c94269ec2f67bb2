"""What the tool `terminal` is made of: running, reading, and telling a model how it went."""
