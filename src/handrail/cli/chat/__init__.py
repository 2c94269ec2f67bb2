"""`handrail chat`: a person and an agent at a terminal. Nothing here knows how an agent works, only what it tells."""
