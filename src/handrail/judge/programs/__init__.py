"""Tables of programs: those that run others (`wrapper_table`, `wrapper_options`, `container_table`), interpreters, programs whose
operands are only data, printers of environment scripts, shell escapes, secret names and fork bombs."""
