"""Write the reference pages from the code: Python API, tools, toolsets, configuration, hooks, errors, command line, rules.

Usage: python scripts/reference.py FOLDER
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from handrail import errors
from handrail.core.builtin import builtin_tools, registry
from handrail.core.registry import ToolEntry
from handrail.plugins.hook_specs import HookSpecs, hookimpl
from handrail.settings.schema import json_schema
from handrail.toolsets import COMPOSITES

ROOT = Path(__file__).parent.parent


def main(folder: Path) -> None:
    builtin_tools()
    (folder / "tools").mkdir(parents=True, exist_ok=True)
    pages = {
        "python.md": python_api,
        "tools/index.md": tools,
        "toolsets.md": toolsets,
        "configuration.md": configuration,
        "hooks.md": hooks,
        "errors.md": error_types,
        "cli.md": command_line,
        "rules.md": rules,
    }
    for name, lines in (*((name, page()) for name, page in pages.items()), *tool_pages()):
        (folder / name).write_text("\n".join(lines) + "\n")


def tools() -> Iterator[str]:
    yield "# Tools\n\nMade from the tools' own schemas; `handrail tools` shows which of them can be used now.\n"
    for toolset, names in registry.get_toolsets().items():
        about = registry.get_toolset_description(toolset).capitalize()
        yield f"## Toolset `{toolset}`\n\n{about}.\n\n| tool | what it does |\n|---|---|"
        for entry in registry.get_entries(names):
            yield f"| {entry.emoji} [`{entry.name}`]({entry.name}.md) | {_cell(_first_sentence(entry.description))} |"
        yield ""


def tool_pages() -> Iterator[tuple[str, Iterator[str]]]:
    """The name and the lines of each tool's own page."""
    guides = {path: path.read_text() for path in sorted((ROOT / "docs" / "how-to").glob("*.md"))}
    for name in registry.get_all_tool_names():
        entry = registry.get_entry(name)
        if entry is not None:
            about = [path for path, text in guides.items() if f"`{name}`" in text]
            yield f"tools/{name}.md", _tool(entry, about)


def _tool(entry: ToolEntry, guides: list[Path]) -> Iterator[str]:
    yield f"# {entry.emoji} `{entry.name}`\n\n{entry.description}\n"
    yield f"It is in the toolset [`{entry.toolset}`](../toolsets.md).{_facts(entry)}\n"
    yield from _arguments(entry.schema["parameters"])
    yield from _example(entry.name)
    if guides:
        yield "\n## More\n"
        yield from (f"- [{path.read_text().splitlines()[0].lstrip('# ')}](../../how-to/{path.name})" for path in guides)


def _facts(entry: ToolEntry) -> str:
    facts = [
        "It changes nothing, and may run beside other calls" if entry.read_only else "",
        f"It ends after {entry.timeout:g} s" if entry.timeout else "",
        "It needs an agent" if entry.needs_agent else "",
        f"It needs {', '.join(entry.requires_env)}" if entry.requires_env else "",
    ]
    return "".join(f" {fact}." for fact in facts if fact)


def _arguments(parameters: dict[str, Any]) -> Iterator[str]:
    if not parameters["properties"]:
        yield "It takes no arguments."
        return
    yield "| argument | type | what it is |\n|---|---|---|"
    for name, schema in parameters["properties"].items():
        needed = " (required)" if name in parameters.get("required", ()) else ""
        yield f"| `{name}`{needed} | {_type(schema)} | {_cell(schema.get('description', ''))} |"


def _example(tool: str) -> Iterator[str]:
    calls = [{"name": call.name, "arguments": call.arguments} for call in registry.get_example(tool)]
    lines = [json.dumps(call, ensure_ascii=False) for call in calls]
    hint = (
        "; `$name` is the value that an earlier answer has under that name"
        if any('"$' in line for line in lines)
        else ""
    )
    yield f"\n## Example\n\nAs a model calls it{hint}:\n\n```json"
    yield from lines
    yield "```"


def _first_sentence(text: str) -> str:
    return text.partition(". ")[0].rstrip(".") + "."


FACES = ("handrail", *(f"handrail.{name}" for name in "approval environments agent testing plugins judge".split()))


def python_api() -> Iterator[str]:
    yield "# Python API\n\nMade from the public faces. What is imported from elsewhere may change without notice.\n"
    for face in FACES:
        module = import_module(face)
        yield f"## `{face}`\n\n{_paragraph(module)}\n"
        for name in sorted(module.__all__, key=str.lower):
            if not name.startswith("_"):
                yield from _public_name(name, getattr(module, name))


def _public_name(name: str, value: Any) -> Iterator[str]:
    if not (inspect.isclass(value) or inspect.isroutine(value)):
        kind = type(value)
        about = f"An object of [`{kind.__name__}`](#{kind.__name__.lower()})." if kind.__module__ != "builtins" else ""
        yield f"### `{name}`\n\n{about or f'A value of type `{kind.__name__}`.'}\n"
        return
    yield f"### `{name}`\n\n```python\n{name}{_signature(value, room=_WIDTH - len(name))}\n```\n\n{inspect.getdoc(value) or ''}\n"
    for method, function in vars(value).items() if inspect.isclass(value) else ():
        if not method.startswith("_") and inspect.isroutine(inspect.unwrap(getattr(value, method))):
            yield f"- `{method}{_signature(getattr(value, method))}` {_paragraph(getattr(value, method))}".rstrip()
        elif isinstance(function, property):
            yield f"- `{method}` {_paragraph(function)}".rstrip()
    yield ""


_WIDTH = 100
_MAX_DEFAULT = 60


def _signature(value: Any, room: int = 10_000) -> str:
    """On one line, or one line per parameter where that is longer than `room`."""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):  # an enum, an exception
        return ""
    shown = [
        each.replace(annotation=_plain(each.annotation), default=_short(each.default))
        for each in signature.parameters.values()
        if each.name != "self"
    ]
    signature = signature.replace(parameters=shown, return_annotation=_plain(signature.return_annotation))
    line = str(signature)
    if len(line) <= room:
        return line
    words = [str(each) for each in shown]
    first = next((at for at, each in enumerate(shown) if each.kind is each.KEYWORD_ONLY), None)
    if first is not None and not any(each.kind is each.VAR_POSITIONAL for each in shown):
        words.insert(first, "*")
    end = "" if signature.return_annotation is signature.empty else f" -> {signature.return_annotation}"
    return "(\n" + "".join(f"    {each},\n" for each in words) + f"){end}"


def _short(default: Any) -> Any:
    return default if default is inspect.Parameter.empty or len(repr(default)) <= _MAX_DEFAULT else _Unquoted("...")


class _Unquoted(str):
    """An annotation as it stands in the source."""

    __slots__ = ()
    __repr__ = str.__str__


def _plain(annotation: Any) -> Any:
    """As people write it: classes without their modules."""
    if annotation is inspect.Signature.empty:
        return annotation
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return _Unquoted(re.sub(r"\b(?:[a-z_]\w*\.)+(?=[A-Z])", "", text))


def _paragraph(value: Any) -> str:
    return " ".join((inspect.getdoc(value) or "").partition("\n\n")[0].split())


def toolsets() -> Iterator[str]:
    yield "# Toolsets\n\nA tool names its toolset when it registers; a bundle includes toolsets.\n"
    yield "## Bundles and presets\n\n| name | for | includes |\n|---|---|---|"
    for name, bundle in COMPOSITES.items():
        yield f"| `{name}` | {bundle.description} | {', '.join(f'`{part}`' for part in bundle.includes)} |"
    yield "\nThe names `hermes-*` mean `handrail-*`; old names with the suffix `_tools` (`web_tools`, ...) still work. "
    yield "`all` and `*` mean everything.\n"
    yield "## Toolsets\n\n| name | for | tools today |\n|---|---|---|"
    for name, tools in registry.get_toolsets().items():
        yield f"| `{name}` | {registry.get_toolset_description(name)} | {', '.join(f'`{tool}`' for tool in tools)} |"


def configuration() -> Iterator[str]:
    yield "# Configuration\n\n`handrail config path` tells where the file is. Every setting of a section can also be given as "
    yield "`HANDRAIL_<SECTION>_<SETTING>`, for example `HANDRAIL_CALLS_BATCH_TIMEOUT=30`.\n"
    for section, schema in json_schema()["properties"].items():
        inner = schema.get("properties") or schema.get("additionalProperties", {})
        inner = inner.get("properties", inner) if isinstance(inner, dict) else {}
        yield f"## `{section}`\n\n{schema.get('description', '')}\n"
        if not inner or isinstance(inner.get("type"), str):  # of a value, not a setting of that name
            continue
        yield "| setting | type | default | what it does |\n|---|---|---|---|"
        for name, setting in inner.items():
            default = json.dumps(setting.get("default"))
            yield f"| `{name}` | {_type(setting)} | `{default}` | {_cell(setting.get('description', ''))} |"
        yield ""


def hooks() -> Iterator[str]:
    yield f"# Hooks\n\n{inspect.getdoc(inspect.getmodule(HookSpecs))}\n"
    yield f"## `@hookimpl`\n\n{inspect.getdoc(hookimpl)}\n"
    for name, spec in vars(HookSpecs).items():
        if name.startswith("_"):
            continue
        arguments = ", ".join(list(inspect.signature(spec).parameters)[1:])
        yield f"## `{name}`\n\n`{name}({arguments})`\n\n{inspect.getdoc(spec)}\n"


def error_types() -> Iterator[str]:
    yield f"# Errors\n\n```text\n{inspect.getdoc(errors)}\n```\n"
    yield "| `error_type` | exception |\n|---|---|"
    for name, kind in vars(errors).items():
        if isinstance(kind, type) and issubclass(kind, errors.ToolError) and kind is not errors.ToolError:
            yield f"| `{kind.error_type}` | `{name}` |"


def rules() -> Iterator[str]:
    from itertools import groupby

    from handrail.judge.rules import Rule, builtin
    from handrail.judge.values.paths import CLASSES

    yield "# Rules about commands\n\nMade from the rules themselves. `block` never runs, `ask` asks a person, `note` only shows. "
    yield "How to write one: [add a rule](../how-to/add-a-rule.md).\n"

    def theme(rule: Rule) -> str:
        return rule.theme

    for name, group in groupby(sorted(builtin().rules.values(), key=lambda rule: (theme(rule), rule.id)), key=theme):
        yield f"## `{name}`\n"
        for rule in group:
            yield from _rule(rule)
    yield "## Classes of paths\n\n| class | which paths |\n|---|---|"
    yield from (f"| `{name}` | {meaning} |" for name, meaning in CLASSES.items())


def _rule(rule: Any) -> Iterator[str]:
    where = "elsewhere" if rule.effect.value == "remote" else "this machine"
    yield f"### `{rule.id}`\n\n{rule.why[:1].upper()}{rule.why[1:]}. Severity `{rule.severity}`, effect on {where}.\n"
    yield from (f"- found: {_code(example)}" for example in rule.match)
    yield from (f"- not matched: {_code(example)}" for example in rule.not_match)
    if rule.uses:
        yield '\n??? note "Uses"\n    ```text'
        yield from (f"    {use}" for use in rule.uses)
        yield "    ```"
    yield ""


def _code(example: str) -> str:
    shown = " ".join(example.split())[:120]
    fence = "``" if "`" in shown else "`"
    return f"{fence} {shown} {fence}" if fence == "``" else f"`{shown}`"


def command_line() -> Iterator[str]:
    import typer.main

    from handrail.cli.app import build

    command: Any = typer.main.get_command(build())
    yield "# Command line\n"
    yield from _command(command, "handrail")


def _command(command: Any, name: str) -> Iterator[str]:
    context = command.make_context(name, [], resilient_parsing=True, max_content_width=100, terminal_width=100)
    yield f"## `{name}`\n\n```text\n{command.get_help(context)}\n```\n"
    for sub_name in command.list_commands(context) if hasattr(command, "list_commands") else ():
        sub = command.get_command(context, sub_name)
        if not sub.hidden:
            yield from _command(sub, f"{name} {sub_name}")


def _type(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(_type(branch) for branch in schema["anyOf"])
    kind = schema.get("type", "any")
    if kind == "array" and isinstance(schema.get("items"), dict):
        return f"list of {_type(schema['items'])}"
    return str(kind) if not isinstance(kind, list) else " or ".join(kind)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
