"""Tools for rollouts: agents try tasks with a reward function. `tool` declares them, `runs` runs them."""
