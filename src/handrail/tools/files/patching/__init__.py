"""How `patch` finds the places of a change, and makes all changes or none."""
