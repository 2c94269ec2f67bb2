"""Read what projects keep in files: which commands a build file runs, and which part of a Python program."""
