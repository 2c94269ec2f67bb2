"""Helpers that know nothing of tools: text, ids, threads and event loops.

Text: `safe_text` (what a model or log may see), `suggest` (did you mean).
Processes: `own_process` (which runtime are we, did an agent start us).
Threads: `workers`, with `run_async`, and `loops` (sync code that waits for coroutines); `rate_limit`.
Files: `atomic` (replace one whole), `temporary_folders`.
Imports: `lazy_module` (names that load when they are first used).
"""
