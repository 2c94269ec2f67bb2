"""Tools that find and call tools which the model's list has no room for; `bm25` and `words` do the search."""
