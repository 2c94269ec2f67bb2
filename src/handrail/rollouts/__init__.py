"""Agents tried on tasks, each in its own environment, and scored by a reward function: `environment` loads, `runner` runs."""
