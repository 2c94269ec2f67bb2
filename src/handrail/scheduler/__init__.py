"""Runs the jobs that are due: `loop` decides when, `job_runner` runs one job."""
