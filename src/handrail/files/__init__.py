"""What file tools share: `local` files below `roots`, `content` as bytes or `text`, `read_tracking`, `atomic` writes, `diff`,
`failures` in plain words, `task_arguments` of a call."""
