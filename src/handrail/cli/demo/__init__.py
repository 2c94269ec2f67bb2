"""A scripted model that uses real tools on a small project, for you to watch. A new scene is an entry of `scenes.yaml`."""
