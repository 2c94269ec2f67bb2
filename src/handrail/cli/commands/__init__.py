"""One file is one command of `handrail`, imported when that command runs.

The file's name is the command's, its docstring is the command's help, and its function of the same name is what runs. A group of
commands has a `cli` instead, made by `options.new_cli()`.
"""
