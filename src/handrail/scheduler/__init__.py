"""Runs the jobs that are due: when (`loop`), and how one is run (`running`)."""
