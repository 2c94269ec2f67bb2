"""The tools, and the table that knows them. Every `*_tool.py` here registers itself when it is imported."""
