"""Our tree in a form that can be compared: nested tuples of structure, words with the quoting of each part, operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from handrail.judge.grammar import syntax
from handrail.judge.grammar.parser import parse
from handrail.judge.grammar.syntax import ShellSyntaxError

Tree = Any


def ours(text: str) -> Tree | None:
    """The tree of a script; None when we refuse it."""
    try:
        script, _ = parse(text)
    except ShellSyntaxError:
        return None
    return of_script(script)


def of_script(script: syntax.Script) -> Tree:
    return tuple(
        ("list", item.background, tuple((operator, _pipeline(pipeline)) for operator, pipeline in item.items))
        for item in script.items
    )


def _pipeline(pipeline: syntax.Pipeline) -> Tree:
    return "pipe", pipeline.negated, pipeline.timed, tuple(map(_command, pipeline.commands))


def _command(node: syntax.Command) -> Tree:
    if isinstance(node, syntax.Simple):
        return simple(
            [_assignment(item) for item in node.assignments],
            [_assignment(word) if isinstance(word, syntax.Assignment) else of_word(word) for word in node.words],
            [_redirect(item) for item in node.redirects],
        )
    return (*_compound(node), tuple(_redirect(item) for item in node.redirects))


def simple(assignments: Sequence[Tree], words: Sequence[Tree], redirects: Sequence[Tree]) -> Tree:
    if words and words[0] == (("text", "let"),):
        return "let", "".join(squeezed(text(word)) for word in words[1:]), tuple(redirects)
    return "simple", tuple(assignments), tuple(words), tuple(redirects)


def _compound(node: syntax.Compound) -> tuple[Any, ...]:
    if isinstance(node, syntax.Block):
        return ("subshell" if node.subshell else "group", of_script(node.body))
    if isinstance(node, syntax.If):
        branches = [(of_script(test), of_script(body)) for test, body in node.branches]
        return nested_if(branches, None if node.otherwise is None else of_script(node.otherwise))
    if isinstance(node, syntax.While):
        return ("until" if node.until else "while", of_script(node.condition), of_script(node.body))
    if isinstance(node, syntax.For):
        words = tuple(map(of_word, node.words or ()))
        return ("select" if node.select else "for", node.name, words, of_script(node.body))
    if isinstance(node, syntax.ArithmeticFor):
        return ("for((", arithmetic(_parts(node.parts)), of_script(node.body))
    if isinstance(node, syntax.Case):
        clauses = tuple(
            (tuple(map(of_word, clause.patterns)), of_script(clause.body), clause.terminator or ";;")
            for clause in node.clauses
        )
        return ("case", of_word(node.subject), clauses)
    if isinstance(node, syntax.ArithmeticCommand):
        return ("((", arithmetic(_parts(node.parts)))
    if isinstance(node, syntax.Condition):
        return ("[[", tuple(map(of_word, node.words)))
    if isinstance(node, syntax.Function):
        return ("function", of_word(node.name), _command(node.body))
    assert isinstance(node, syntax.Coprocess)
    return ("coproc", node.name, _command(node.body))


def nested_if(branches: Sequence[tuple[Tree, Tree]], otherwise: Tree | None) -> tuple[Any, ...]:
    """`elif` as an `if` inside `else`, which is how bash keeps it."""
    (test, body), *rest = branches
    if rest:
        inner = (*nested_if(rest, otherwise), ())
        otherwise = (("list", False, (("", ("pipe", False, False, (inner,))),)),)
    return ("if", test, body, otherwise)


def _redirect(node: syntax.Redirect) -> Tree:
    if node.operator in ("<<", "<<-"):
        body = of_word(node.body) if node.body is not None else ()
        return "redirect", node.descriptor, node.operator, node.quoted, unquoted(body)
    return "redirect", node.descriptor, node.operator, of_word(node.target)


def _assignment(node: syntax.Assignment) -> Tree:
    index = None if node.index is None else arithmetic(of_word(node.index))
    if node.elements is None:
        return "assign", node.name, index, node.appends, of_word(node.value)
    elements = tuple(
        (None if place is None else arithmetic(of_word(place)), of_word(value)) for place, value in node.elements
    )
    return "assign", node.name, index, node.appends, ("array", elements)


def of_word(word: syntax.Word) -> Tree:
    return _parts(word.parts)


def _parts(parts: Sequence[syntax.Part]) -> Tree:
    return merged([_part(part) for part in parts])


def _part(part: syntax.Part) -> Tree:
    if isinstance(part, syntax.Literal):
        return "text", part.text
    if isinstance(part, syntax.Quoted):
        return "quoted", part.text
    if isinstance(part, syntax.DoubleQuoted):
        return "double", _parts(part.parts)
    if isinstance(part, syntax.Parameter):
        return _parameter(part)
    if isinstance(part, syntax.Substitution):
        return "$(", of_script(part.script)
    if isinstance(part, syntax.ProcessSubstitution):
        return part.direction + "(", of_script(part.script)
    return "$((", arithmetic(_parts(part.parts))


def _parameter(part: syntax.Parameter) -> Tree:
    operator = part.operator
    index = None if part.index is None else arithmetic(of_word(part.index))
    arguments = [of_word(word) for word in (part.argument, part.second) if word is not None]
    if operator == ":":
        arguments = [arithmetic(plain(argument)) for argument in arguments]
    if operator in ("/#", "/%"):
        arguments[0] = merged([("text", operator[1]), *arguments[0]])
        operator = "/"
    return "$", part.name, index, part.indirect, operator, operands(arguments)


def operands(arguments: Sequence[Tree]) -> Tree:
    """The operands of `${..}` without empty ones at the end."""
    kept = [plain(argument) for argument in arguments]
    while kept and not kept[-1]:
        kept.pop()
    return tuple(kept)


def plain(word: Tree) -> Tree:
    """An operand: whether its bare text counts as quoted depends on what is around `${..}`, so it is not compared."""
    return merged([("text", part[1]) if part[0] == "quoted" else part for part in word])


def merged(parts: Sequence[Tree]) -> Tree:
    """Neighbouring texts of one kind as one."""
    out: list[Tree] = []
    for part in parts:
        if out and part[0] in ("text", "quoted") and out[-1][0] == part[0]:
            out[-1] = (part[0], out[-1][1] + part[1])
        else:
            out.append(part)
    return tuple(out)


def arithmetic(word: Tree) -> Tree:
    """An expression without its blanks."""
    parts = [(part[0], squeezed(part[1])) if part[0] == "text" else part for part in word]
    return merged([part for part in parts if part != ("text", "")])


def unquoted(word: Tree) -> Tree:
    """A here-document's text: all of it is quoted in the same way."""
    parts: list[Tree] = []
    for part in word:
        parts += part[1] if part[0] == "double" else [part]
    return merged([("text", part[1]) if part[0] == "quoted" else part for part in parts if part != ("quoted", "")])


def squeezed(text: str) -> str:
    return "".join(text.split())


def text(word: Tree) -> str:
    return "".join(str(part[1]) for part in word)
