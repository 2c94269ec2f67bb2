"""Follow a parsed command as bash would run it, without running anything.

`walk` is the object that does it. It uses `state` (variables and files, with a journal, and the paths that are possible),
`expansion` with `fields` and `operators` (what words become) and `judgement` (the findings, and which count).

`program_handlers` is what it knows about single programs. What a program runs in turn: `builtins`, `interpreters`,
`program_options` and the `*_programs` modules. What it writes and prints: `files_made`, `text_emulation`, `output_provenance`.

What it runs from the disk is followed by `script_files`.
`script_programs`, `python_files`, `code_programs` and `build_programs` know which files a program runs.
"""
