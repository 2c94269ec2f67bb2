"""Tools that find and call tools which the model's list has no room for; `ranking` and `words` do the search."""
