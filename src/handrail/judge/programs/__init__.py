"""What is known about programs: `tables` (those that run others, interpreters, programs whose operands are only data),
`long_options` and endless loops."""
