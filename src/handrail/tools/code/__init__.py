"""Run a model's Python where the task's commands run, and let it call the tools that the model has."""
