"""What is behind the tools for rollouts: what environments there are, and the runs."""
