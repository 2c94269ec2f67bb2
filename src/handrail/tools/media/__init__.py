"""Images, speech, and other models: what the tools for them do."""
