"""A scripted model that uses real tools on a small project, for you to watch. A new scene is an entry of `scenes.yaml`."""

# Of its folder; the process id follows, so that `env prune` finds the folders of demos that were killed.
FOLDER_PREFIX = "handrail-demo-"
