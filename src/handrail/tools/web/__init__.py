"""What the web tools are made of: the guard, fetching, extracting, searching."""
