"""shfmt's tree in the same form as ours, and what bash says."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from handrail.judge.grammar.lexical import decode_escapes

from .ours import Tree, arithmetic, merged, nested_if, operands, ours, simple, squeezed, text, unquoted

_SHFMT = Path(sys.executable).parent / "shfmt"
_UNQUOTED_ESCAPE = re.compile(r"\\(\n|.)", re.S)
_DOUBLE_ESCAPE = re.compile(r'\\([$`"\\\n])')
_DOCUMENT_ESCAPE = re.compile(r"\\([$`\\\n])")


class NotComparable(Exception):
    """shfmt keeps this as raw text."""


def shfmt(source: str) -> Tree | None:
    """The tree that shfmt makes of a script; None when it refuses it."""
    ran = subprocess.run([_SHFMT, "-ln", "bash", "--to-json"], input=_bytes(source), capture_output=True)
    if ran.returncode:
        return None
    try:
        return _script(json.loads(ran.stdout).get("Stmts", ()))
    except KeyError as missing:  # an assignment without a name, which shfmt makes of some broken words
        raise NotComparable from missing


def bash(source: str) -> Tree | None:
    """What bash has read, as it prints it, read again by us; None when it refuses the script. Nothing is run."""
    ran = subprocess.run(["bash", "--norc", "--pretty-print"], input=_bytes(source), capture_output=True)
    if ran.returncode or b"syntax error" in ran.stderr or b"unexpected EOF" in ran.stderr:
        return None
    printed = ran.stdout.decode("utf-8", "surrogateescape")
    # A control character is printed twice, and a coprocess with the name that it would have got.
    tree = ours(printed.replace("\1\1", "\1").replace("\1\x7f", "\x7f").replace("coproc COPROC ", "coproc "))
    if tree is None:
        raise NotComparable
    return tree


def _bytes(source: str) -> bytes:
    return source.encode("utf-8", "surrogateescape")


def _script(statements: Any) -> Tree:
    return tuple(
        ("list", bool(statement.get("Background")), tuple(_and_or(statement))) for statement in statements or ()
    )


def _and_or(statement: Any, operator: str = "") -> list[Tree]:
    command = statement.get("Cmd") or {}
    if command.get("Type") == "BinaryCmd" and command["Op"] in ("&&", "||"):
        return [*_and_or(command["X"], operator), *_and_or(command["Y"], command["Op"])]
    negated, timed, commands = _pipeline(statement)
    return [(operator, ("pipe", negated, timed, tuple(commands)))]


def _pipeline(statement: Any) -> tuple[bool, bool, list[Tree]]:
    negated = bool(statement.get("Negated"))
    command = statement.get("Cmd") or {}
    kind = command.get("Type")
    if kind == "TimeClause":
        if not command.get("Stmt"):
            return negated, True, []
        inner, _, commands = _pipeline(command["Stmt"])
        return negated ^ inner, True, commands
    if kind == "BinaryCmd" and command["Op"] in ("|", "|&"):
        before = _pipeline(command["X"])[2]
        if command["Op"] == "|&":
            before[-1] = (*before[-1][:-1], (*before[-1][-1], ("redirect", "2", ">&", (("text", "1"),))))
        return negated, False, [*before, *_pipeline(command["Y"])[2]]
    if not command and not statement.get("Redirs"):
        return negated, False, []
    return negated, False, [_command(statement)]


def _command(statement: Any) -> Tree:
    redirects = [_redirect(redirect) for redirect in statement.get("Redirs") or ()]
    command = statement.get("Cmd")
    if command is None:
        return simple([], [], redirects)
    kind = command["Type"]
    if kind == "CallExpr":
        assignments = [_assignment(item) for item in command.get("Assigns") or ()]
        return simple(assignments, [_word(word) for word in command.get("Args") or ()], redirects)
    if kind == "DeclClause":
        words = [(("text", command["Variant"]["Value"]),), *map(_declared, command.get("Args") or ())]
        return simple([], words, redirects)
    if kind == "LetClause":
        expression = "".join(squeezed(text(_arithmetic(item))) for item in command["Exprs"])
        return "let", expression, tuple(redirects)
    return (*_compound(kind, command), tuple(redirects))


def _compound(kind: str, command: Any) -> tuple[Any, ...]:
    if kind in ("Subshell", "Block"):
        return ("subshell" if kind == "Subshell" else "group", _script(command["Stmts"]))
    if kind == "IfClause":
        return _if(command)
    if kind == "WhileClause":
        return ("until" if command.get("Until") else "while", _script(command["Cond"]), _script(command["Do"]))
    if kind == "ForClause":
        return _for(command)
    if kind == "CaseClause":
        clauses = tuple(
            (tuple(map(_word, item["Patterns"])), _script(item.get("Stmts")), item["Op"])
            for item in command.get("Items") or ()
        )
        return ("case", _word(command["Word"]), clauses)
    if kind == "ArithmCmd":
        return ("((", arithmetic(_arithmetic(command.get("X"))))
    if kind == "TestClause":
        return ("[[", tuple(_test(command["X"])))
    if kind == "FuncDecl":
        if (command["Body"].get("Cmd") or {}).get("Type") in ("BinaryCmd", "TimeClause"):
            raise NotComparable  # it takes what follows the function for its body
        return ("function", (("text", command["Name"]["Value"]),), _command(command["Body"]))
    assert kind == "CoprocClause", kind
    if (command["Stmt"].get("Cmd") or {}).get("Type") in ("BinaryCmd", "TimeClause", None):
        raise NotComparable
    name = command.get("Name")
    return ("coproc", text(_word(name)) if name else "COPROC", _command(command["Stmt"]))


def _if(command: Any) -> tuple[Any, ...]:
    branches = []
    while command is not None and command.get("Cond"):
        branches.append((_script(command["Cond"]), _script(command["Then"])))
        command = command.get("Else")
    return nested_if(branches, None if command is None else _script(command["Then"]))


def _for(command: Any) -> tuple[Any, ...]:
    loop = command["Loop"]
    if loop["Type"] == "CStyleLoop":
        parts: list[Tree] = []
        for number, name in enumerate(("Init", "Cond", "Post")):
            parts += [("text", ";" if number else ""), *_arithmetic(loop.get(name))]
        return ("for((", arithmetic(merged(parts)), _script(command["Do"]))
    words = tuple(map(_word, loop.get("Items") or ()))
    return ("select" if command.get("Select") else "for", loop["Name"]["Value"], words, _script(command["Do"]))


def _redirect(redirect: Any) -> Tree:
    descriptor = (redirect.get("N") or {}).get("Value", "")
    if redirect["Op"] not in ("<<", "<<-"):
        return "redirect", descriptor, redirect["Op"], _word(redirect["Word"])
    delimiter = json.dumps(redirect["Word"])
    quoted = "SglQuoted" in delimiter or "DblQuoted" in delimiter or "\\\\" in delimiter
    body = _word(redirect.get("Hdoc"), "raw" if quoted else "document")
    if redirect["Op"] == "<<-":
        body = _without_tabs(body)
    return "redirect", descriptor, redirect["Op"], quoted, unquoted(body)


def _without_tabs(body: Tree) -> Tree:
    out = []
    at_start = True
    for kind, *rest in body:
        if kind == "quoted":
            stripped = re.sub(r"\n\t+", "\n", rest[0])
            out.append((kind, stripped.lstrip("\t") if at_start else stripped))
            at_start = rest[0].endswith("\n")
        else:
            out.append((kind, *rest))
            at_start = False
    return tuple(out)


def _declared(item: Any) -> Tree:
    if not item.get("Naked"):
        return _assignment(item)
    return (("text", item["Name"]["Value"]),) if item.get("Name") else _word(item["Value"])


def _assignment(item: Any) -> Tree:
    index = arithmetic(_arithmetic(item["Index"])) if item.get("Index") else None
    appends = bool(item.get("Append"))
    if item.get("Array"):
        elements = tuple(
            (arithmetic(_arithmetic(element["Index"])) if element.get("Index") else None, _word(element.get("Value")))
            for element in item["Array"].get("Elems") or ()
        )
        return "assign", item["Name"]["Value"], index, appends, ("array", elements)
    return "assign", item["Name"]["Value"], index, appends, _word(item.get("Value"))


def _word(word: Any, mode: str = "") -> Tree:
    return merged([part for item in (word or {}).get("Parts") or () for part in _part(item, mode)])


def _part(part: Any, mode: str) -> list[Tree]:
    kind = part["Type"]
    if kind == "Lit":
        return _literal(part.get("Value", ""), mode)
    if kind == "SglQuoted":
        value = part.get("Value", "")
        return [("quoted", decode_escapes(value, dollar=True) if part.get("Dollar") else value)]
    if kind == "DblQuoted":
        return [("double", merged([inner for item in part.get("Parts") or () for inner in _part(item, "double")]))]
    if kind == "ParamExp":
        return [_parameter(part, mode)]
    if kind == "CmdSubst":
        return [("$(", _script(part.get("Stmts")))]
    if kind == "ProcSubst":
        return [(part["Op"], _script(part.get("Stmts")))]
    if kind == "ArithmExp":
        return [("$((", arithmetic(_arithmetic(part.get("X"))))]
    assert kind == "ExtGlob", kind
    pattern = part["Pattern"]["Value"]
    if any(char in pattern for char in "'\"$`"):
        raise NotComparable
    return [("text", part["Op"]), *_literal(pattern, ""), ("text", ")")]


def _literal(value: str, mode: str) -> list[Tree]:
    if mode == "raw":
        return [("quoted", value)]
    if mode in ("double", "document"):
        escape = _DOUBLE_ESCAPE if mode == "double" else _DOCUMENT_ESCAPE
        return [("quoted", escape.sub(lambda match: "" if match[1] == "\n" else match[1], value))]
    out: list[Tree] = []
    last = 0
    for match in _UNQUOTED_ESCAPE.finditer(value):
        out.append(("text", value[last : match.start()]))
        if match[1] != "\n":
            out.append(("quoted", match[1]))
        last = match.end()
    out.append(("text", value[last:]))
    return [part for part in out if part != ("text", "")]


def _parameter(part: Any, mode: str) -> Tree:
    name = (part.get("Param") or {}).get("Value")
    index = arithmetic(_arithmetic(part["Index"])) if part.get("Index") else None
    indirect = bool(part.get("Excl"))
    operator, arguments = "", []
    if part.get("Length"):
        operator = "length"
    elif part.get("Names"):
        operator = "prefix"
    elif part.get("Slice"):
        operator = ":"
        arguments = [arithmetic(_arithmetic(part["Slice"].get("Offset")))]
        if part["Slice"].get("Length"):
            arguments.append(arithmetic(_arithmetic(part["Slice"]["Length"])))
    elif part.get("Repl"):
        operator = "//" if part["Repl"].get("All") else "/"
        arguments = [_word(part["Repl"].get("Orig"), mode)]
        if part["Repl"].get("With"):
            arguments.append(_word(part["Repl"]["With"], mode))
    elif part.get("Exp"):
        operator = part["Exp"]["Op"]
        arguments = [_word(part["Exp"].get("Word"), mode)]
    return "$", name, index, indirect, operator, operands(arguments)


def _arithmetic(node: Any) -> Tree:
    if node is None:
        return ()
    kind = node.get("Type", "Word")
    if kind == "Word":
        return _word(node)
    if kind == "BinaryArithm":
        return merged([*_arithmetic(node["X"]), ("text", node["Op"]), *_arithmetic(node["Y"])])
    if kind == "UnaryArithm":
        inner, sign = _arithmetic(node["X"]), ("text", node["Op"])
        return merged([*inner, sign] if node.get("Post") else [sign, *inner])
    assert kind == "ParenArithm", kind
    return merged([("text", "("), *_arithmetic(node["X"]), ("text", ")")])


def _test(node: Any) -> list[Tree]:
    kind = node.get("Type", "Word")
    if kind == "Word":
        return [_word(node)]
    if kind == "BinaryTest":
        return [*_test(node["X"]), (("text", node["Op"]),), *_test(node["Y"])]
    if kind == "UnaryTest":
        return [(("text", node["Op"]),), *_test(node["X"])]
    assert kind == "ParenTest", kind
    return [(("text", "("),), *_test(node["X"]), (("text", ")"),)]
