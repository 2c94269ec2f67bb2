"""One file is one command of `handrail`, imported when that command runs.

The file's name is the command's, its docstring is the command's help, and its `cli` is a `typer.Typer` made by
`options.new_cli()`: with one function it is a command, with several, or a callback, a group of them.
"""
