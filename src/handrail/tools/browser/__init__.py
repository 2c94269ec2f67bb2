"""What the browser tools are made of: one browser a runtime, a session with pages of its own a task."""
