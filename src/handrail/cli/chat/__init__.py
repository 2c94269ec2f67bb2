"""`handrail chat`: you and an agent at a terminal. It knows an agent only by its events."""
