"""Follow a parsed command as bash would run it, without running anything.

`walk` is the object that does it. It uses `state` (variables and files, with a journal), `expansion` with `fields`,
`operators` and `arithmetic` (what words become), `path_exploration` (several possible values) and `judgement` (the findings).

`program_handlers` is what it knows about single programs. What a program runs in turn: `builtins`, `interpreters`,
`program_options` and the `*_programs` modules. What it writes and prints: `files_made`, `text_emulation`, `output_provenance`.

What it runs from the disk: `sources` looks files up, `script_files` follows them, `script_scope` says which findings count there.
`script_programs`, `python_files`, `code_programs`, `build_programs` and `git_files` know which files a program runs.
"""
