"""What file tools share: `local` files below their roots, `content` as bytes or `text` and what was read of it, `failures` in
plain words, `task_arguments` of a call."""
