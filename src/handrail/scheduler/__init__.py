"""Runs the jobs that are due."""
