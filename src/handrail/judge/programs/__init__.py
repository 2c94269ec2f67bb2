"""What is known about programs: `tables` (those that run others, interpreters, programs whose operands are only data),
`wrapper_options`, `long_options`, shell escapes, secret names and fork bombs."""
