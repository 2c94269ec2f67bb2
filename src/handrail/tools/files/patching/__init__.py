"""How `patch` finds the places that a change means, and makes all changes or none."""
