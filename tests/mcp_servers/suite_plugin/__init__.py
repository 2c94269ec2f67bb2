"""What the MCP conformance suite expects of a server, offered the way any plugin offers something."""

import asyncio
import base64
import itertools
import json

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
SILENCE = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="
PICTURE = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}
SOUND = {"type": "input_audio", "input_audio": {"data": SILENCE, "format": "wav"}}
BROAD_SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
DEFAULTS = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "default": True},
}
CHOICES = ["option1", "option2", "option3"]
NAMED = [{"const": f"value{number}", "title": f"Choice {number}"} for number in (1, 2, 3)]
ENUMS = {
    "untitledSingle": {"type": "string", "enum": CHOICES},
    "titledSingle": {"type": "string", "oneOf": NAMED},
    "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["One", "Two", "Three"]},
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": CHOICES}},
    "titledMulti": {"type": "array", "items": {"anyOf": NAMED}},
}
TEXT = {"type": "string"}


def form(message, properties, required=()):
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return {"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}}


def sampling(text, most=100):
    message = {"role": "user", "content": {"type": "text", "text": text}}
    return {"method": "sampling/createMessage", "params": {"messages": [message], "maxTokens": most}}


def embedded(uri, text, kind="text/plain"):
    return {"type": "resource", "resource": {"uri": uri, "mimeType": kind, "text": text}}


def parts(*content):
    return {"_multimodal": True, "content": list(content)}


NAME = form("What is your name?", {"name": TEXT}, ["name"])
ROOTS = {"method": "roots/list", "params": {}}


def fails(args, **_):
    raise RuntimeError("This tool intentionally returns an error for testing")


def with_progress(args, context):
    for share in (0.0, 0.5, 1.0):
        context.progress("a step", share)
    return "done"


def with_logging(args, context):
    for each in ("started", "processing data", "completed"):
        context.client.log("info", f"Tool execution {each}")
    return "done"


def asks(**requests):
    async def handle(args, context):
        wanted = {key: each(args) if callable(each) else each for key, each in requests.items()}
        return {"answers": await context.client.request(wanted)}

    return handle


async def in_rounds(args, context):
    one = await context.client.request({"step1": form("Step 1: What is your name?", {"name": TEXT}, ["name"])})
    two = await context.client.request({"step2": form("Step 2: Which colour?", {"color": TEXT}, ["color"])})
    return {"answers": {**one, **two}}


async def what_it_can(args, context):
    wanted = {"user_name": NAME, "greeting": sampling("Generate a greeting", 50)}
    return {
        "answers": await context.client.request(
            {k: v for k, v in wanted.items() if context.client.supports(v["method"])}
        )
    }


async def streaming(args, context):
    context.progress("before the question", 0.5)
    return {"answers": await context.client.request({"user_name": NAME})}


async def slow(args, context):
    await asyncio.sleep(args.get("seconds", 1))
    return "computed"


async def failing_job(args, context):
    await asyncio.sleep(1)
    raise RuntimeError("it fails")


async def cannot_be_served(args, context):
    await asyncio.sleep(1)
    return {"answers": await context.client.request({"client_roots": ROOTS})}


async def confirm_delete(args, context):
    await asyncio.sleep(1)
    answers = await context.client.request({"confirm": form("Delete it?", {"confirm": {"type": "boolean"}})})
    return {"answers": answers}


async def multi_input(args, context):
    await asyncio.sleep(1)
    answers = await context.client.request({key: form(key, {"name": TEXT}) for key in ("first", "second")})
    return {"answers": answers}


async def with_task(args, context):
    answers = await context.client.request({"user_name": NAME})
    await asyncio.sleep(1)
    return f"Hello, {answers['user_name']['content']['name']}!"


async def prompt_with_question(arguments, client):
    question = form("What context should the prompt use?", {"context": TEXT}, ["context"])
    return json.dumps(await client.request({"user_context": question}))


def message(content):
    return {"role": "user", "content": content}


def text(words):
    return {"type": "text", "text": words}


MIXED = (
    text("Multiple content types test:"),
    PICTURE,
    embedded("test://mixed-content-resource", '{"test":"data","value":123}', "application/json"),
)
TOOLS = {
    "test_simple_text": lambda args, **_: "This is a simple text response for testing.",
    "test_image_content": lambda args, **_: parts(PICTURE),
    "test_audio_content": lambda args, **_: parts(SOUND),
    "test_embedded_resource": lambda args, **_: parts(embedded("test://embedded-resource", "An embedded resource.")),
    "test_multiple_content_types": lambda args, **_: parts(*MIXED),
    "test_tool_with_logging": with_logging,
    "test_tool_with_progress": with_progress,
    "test_error_handling": fails,
    "test_sampling": asks(answer=lambda args: sampling(args["prompt"])),
    "test_elicitation": asks(
        answer=lambda args: form(args["message"], {"username": TEXT, "email": TEXT}, ["username", "email"])
    ),
    "test_elicitation_sep1034_defaults": asks(answer=form("Your data, please", DEFAULTS)),
    "test_elicitation_sep1330_enums": asks(answer=form("Your choices, please", ENUMS)),
    "test_input_required_result_elicitation": asks(user_name=NAME),
    "test_input_required_result_sampling": asks(capital_question=sampling("What is the capital of France?")),
    "test_input_required_result_list_roots": asks(client_roots=ROOTS),
    "test_input_required_result_request_state": asks(
        confirm=form("Please confirm", {"ok": {"type": "boolean"}}, ["ok"])
    ),
    "test_input_required_result_tampered_state": asks(
        confirm=form("Please confirm", {"ok": {"type": "boolean"}}, ["ok"])
    ),
    "test_input_required_result_multiple_inputs": asks(
        user_name=NAME, greeting=sampling("Generate a greeting", 50), client_roots=ROOTS
    ),
    "test_input_required_result_multi_round": in_rounds,
    "test_input_required_result_capabilities": what_it_can,
    "test_missing_capability": asks(answer=sampling("Anything")),
    "test_streaming_elicitation": streaming,
    "test_logging_tool": with_logging,
    "greet": lambda args, **_: f"Hello, {args['name']}!",
    "slow_compute": slow,
    "failing_job": failing_job,
    "protocol_error_job": cannot_be_served,
    "confirm_delete": confirm_delete,
    "multi_input": multi_input,
    "test_tool_with_task": with_task,
}
SCHEMAS = {
    "test_sampling": {"prompt": TEXT},
    "test_elicitation": {"message": TEXT},
    "greet": {"name": TEXT},
    "slow_compute": {"seconds": {"type": "number"}, "label": TEXT},
    "confirm_delete": {"filename": TEXT},
}


def register(api):
    for name, handler in TOOLS.items():
        schema = {"type": "object", "properties": SCHEMAS.get(name, {})}
        register_tool(api, name, schema, handler)
    register_tool(api, "json_schema_2020_12_tool", BROAD_SCHEMA, lambda args, **_: "ok")
    header = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
    register_tool(api, "test_x_mcp_header", header, lambda args, **_: "ok")
    api.resource("test://static-text", lambda: "The static text.", name="text", description="Text.")
    picture = base64.b64decode(PIXEL)
    api.resource("test://static-binary", lambda: picture, name="picture", description="A pixel.", mime_type="image/png")
    api.resource("test://watched-resource", lambda: "It never changes.", name="watched", description="Watched.")

    def data(**parts):
        return json.dumps({**parts, "data": f"Data for ID: {parts['id']}"})

    api.resource("test://template/{id}/data", data, name="data", description="Data.", mime_type="application/json")
    register_prompts(api)
    register_changes(api)


def register_changes(api):
    numbers = itertools.count()

    def more_tools(args, **_):
        register_tool(api, f"added_{next(numbers)}", {"type": "object", "properties": {}}, lambda args, **_: "added")
        return "added"

    def more_prompts(args, **_):
        api.prompt(f"added_{next(numbers)}", lambda arguments, client: "Added.", description="Added later.")
        return "added"

    register_tool(api, "test_trigger_tool_change", {"type": "object", "properties": {}}, more_tools)
    register_tool(api, "test_trigger_prompt_change", {"type": "object", "properties": {}}, more_prompts)


def register_tool(api, name, parameters, handler):
    is_async = asyncio.iscoroutinefunction(handler)
    schema = {"description": f"{name} of the suite.", "parameters": parameters}
    api.register_tool(name, toolset="suite", schema=schema, handler=handler, is_async=is_async)


def register_prompts(api):
    def prompt(name, render, *arguments, **more):
        about = tuple({"name": each, "description": each, "required": True} for each in arguments)
        api.prompt(name, render, description=f"{name} of the suite.", arguments=about, **more)

    def complete(argument, begun):
        return ["paris", "park", "party"]

    prompt("test_simple_prompt", lambda arguments, client: "This is a simple prompt for testing.")
    words = "Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"
    prompt(
        "test_prompt_with_arguments",
        lambda arguments, client: words.format(**arguments),
        "arg1",
        "arg2",
        complete=complete,
    )
    prompt(
        "test_prompt_with_embedded_resource",
        lambda arguments, client: [
            message(embedded(arguments["resourceUri"], "Embedded.")),
            message(text("Process it.")),
        ],
        "resourceUri",
    )
    prompt("test_prompt_with_image", lambda arguments, client: [message(PICTURE), message(text("Analyse it."))])
    prompt("test_input_required_result_prompt", prompt_with_question)
