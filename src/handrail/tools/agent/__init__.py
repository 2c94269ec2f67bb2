"""Tools of the agent loop: clarify, delegate_task, memory, session_search, todo. Their state belongs to the agent."""
