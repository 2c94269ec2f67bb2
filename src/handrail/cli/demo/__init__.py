"""A scripted model that uses real tools on a small project, to be watched. A new scene is one function in `scenes.py`."""

# Of the folder that it plays in; its process follows, so that what was cut off can be told from what runs.
FOLDER_PREFIX = "handrail-demo-"
