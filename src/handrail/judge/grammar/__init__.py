"""The grammar of the shell: `lexical` (characters and operators), `syntax` (the tree, and where nested text comes from),
`parser`; and `sql` (dangerous statements)."""
