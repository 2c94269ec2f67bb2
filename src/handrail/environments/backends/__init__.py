"""The built-in backends, one file each; `backend_table.BUILT_IN` lists them."""
