"""The grammar of the shell: `lexical` (characters and operators), `syntax` (the tree), `parser`, `source_map` (where nested text
comes from); and `sql` (dangerous statements)."""
