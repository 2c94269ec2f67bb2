"""One module a command. Each has `add_to(app)`, which is all that the command line knows of it."""
