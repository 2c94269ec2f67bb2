"""List tools, call one, read an error."""

import json
import tempfile
from pathlib import Path

from handrail.model_tools import get_tool_definitions, handle_function_call

with tempfile.TemporaryDirectory() as folder:
    hello = Path(folder, "hello.txt")
    hello.write_text("Hello,\nworld\n")

    # What a model is shown: OpenAI's format, or format="anthropic", "responses", "gemini", "mcp".
    definitions = get_tool_definitions(enabled_toolsets=["file"])
    print([definition["function"]["name"] for definition in definitions])

    # What a model sends: a name, and the JSON text of its arguments. What it gets back is always JSON.
    answer = handle_function_call("read_file", json.dumps({"path": str(hello)}))
    print(json.loads(answer)["content"])

    # What models get wrong about types is fixed; what cannot be fixed is named.
    answer = handle_function_call("read_file", {"path": str(hello), "offset": "2"})
    print(json.loads(answer)["content"])
    print(handle_function_call("read_file", {"file": "hello.txt"}))
