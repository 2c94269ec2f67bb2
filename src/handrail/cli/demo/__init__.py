"""A scripted model that uses real tools on a small project, to be watched. A new scene is one function in `scenes.py`."""
