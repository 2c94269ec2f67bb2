"""Where commands run: one small interface (base.py), one file a backend, one live shell a task."""
