"""The configuration: where its file is, how it is loaded, checked and changed. What can be set is in `handrail.settings`.

`store` loads it, with the environment over the file, and keeps back what became weaker; `paths` says where things are, and has
safe reading and writing; `validation` reads and checks the text; `config_file` changes it. Beside it: `keys` (API keys) and
`trust` (what the user has trusted).
"""
