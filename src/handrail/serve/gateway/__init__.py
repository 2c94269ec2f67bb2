"""The chats where people talk with the agents of this machine, and answer their questions: one file a platform in `kinds`."""
