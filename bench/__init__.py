"""Measure Handrail against the floors: the least that plain Python could do for the same."""
