"""The built-in backends: one file each, with the backend's name. Its `BACKEND` is the class that makes the environments."""
