"""What the file tools are made of. The tools themselves are the `*_tool.py` beside this folder."""
