"""What is kept on disk between calls and between runs."""
