"""What is behind the tools for Home Assistant."""
