"""Helpers that know nothing of tools: text, ids, threads and event loops.

Text: `safe_text` (what a model or log may see), `prompt_injection`, `terminal_text` (output as lines), `suggest` (did you mean).
Processes: `runtime_id` (which runtime made something, and does it still run), `agent_ancestry` (did an agent start us).
Threads: `workers`, `turns`, `async_bridge` and `loops` (sync code that waits for coroutines).
Imports: `lazy_module` (names that load when they are first used).
"""
