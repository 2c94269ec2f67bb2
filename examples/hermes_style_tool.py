"""A tool as the documentation of Hermes Agent shows it. Only the import line is ours."""

import json
import os

from handrail.tools.registry import registry


def check_requirements() -> bool:
    return bool(os.getenv("WEATHER_API_KEY"))


def weather_tool(location: str, units: str = "metric") -> str:
    return json.dumps({"location": location, "temperature": 21, "units": units})


registry.register(
    name="weather",
    toolset="weather",
    schema={
        "name": "weather",
        "description": "Get the current weather for a location.",
        "parameters": {
            "type": "object",
            "properties": {
                "location": {"type": "string", "description": "City name"},
                "units": {"type": "string", "enum": ["metric", "imperial"]},
            },
            "required": ["location"],
        },
    },
    handler=lambda args, **kw: weather_tool(location=args.get("location", ""), units=args.get("units", "metric")),
    check_fn=check_requirements,
    requires_env=["WEATHER_API_KEY"],
    is_async=False,
    description="Get the current weather for a location.",
    emoji="⛅",
)

if __name__ == "__main__":
    from handrail.model_tools import handle_function_call

    print(handle_function_call("weather", {"location": "Lisbon"}))
