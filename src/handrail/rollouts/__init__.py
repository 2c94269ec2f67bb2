"""Agents tried on tasks, each in an environment of its own, and scored by a reward function."""
