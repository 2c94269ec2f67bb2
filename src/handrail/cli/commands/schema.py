"""Print the tool definitions that a model gets, as JSON.

Only tools that can be used now are included. Without --toolset or --disable, the configuration decides.

Examples:
  handrail schema --toolset file
  handrail schema --disable terminal --format anthropic > tools.json
  handrail schema | jq -r '.[].function.name'
"""

from typing import Annotated

from ...runtime.provider_formats import Format
from ..options import Disabled, Toolsets, option
from ..output import emit_json
from ..runtime import open_runtime

Dialect = Annotated[Format, option("--format NAME", "openai, responses, anthropic, gemini or mcp.")]


def schema(toolset: Toolsets = None, disable: Disabled = None, dialect: Dialect = "openai") -> None:
    app = open_runtime()
    app.await_toolsets(toolset)
    emit_json(app.get_tool_definitions(toolset, disable, quiet_mode=True, format=dialect))
