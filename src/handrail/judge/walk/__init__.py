"""Read a shell command as bash would, and follow what it would do, without running anything."""
