"""Parse a shell script: `parse(text)`. Raises ShellSyntaxError for what cannot be read; the caller must then ask for approval.

One pass, and nothing is run. No region is read more than twice and nesting is bounded, so time grows with the text.

This file is longer than the others on purpose. The grammar of the shell is mutually recursive (a word holds a substitution,
which holds a script, which holds words) and all of it moves one position through one text. Cutting the class in pieces would
only spread that one object over several files. It reads from the whole to the parts: scripts, compound commands, simple
commands, here-documents, words, parameters and arithmetic, and the scanner at the end.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from . import lexical, syntax
from .lexical import RESERVED

MAX_DEPTH = 48
MAX_COMMANDS = 20_000
MAX_WORDS = 100_000
MAX_PARTS = 20_000
MAX_HERE_DOCUMENTS = 1_000
MAX_CUTS = 500
_TEST_OPERATORS = ("&&", "||", "(", ")", "<", ">")
_ENDS_COMMAND = re.compile(r"[;&|<>\n]")
_ENDS_EXPANSION = re.compile(r"\}")
_PLAIN_HASH = re.compile(r"#(?:[-}=?+%/:#]|\Z)")
_LENGTH_OF_SPECIAL = re.compile(r"#[#@*?$!\-]\}")
_ENDS_SIMPLE = frozenset(("", *"\n;)|"))
_PREFIX_END = re.compile(r"[*@]\}")
_ESCAPED_IN_DOUBLE = ("$", "`", '"', "\\", "\n", "}")
_IN_DECODED = re.compile(r"([^'\\]*(?:\\.[^'\\]*)*)'", re.S)


def parse(text: str, depth: int = 0) -> tuple[syntax.Script, syntax.TextMap | None]:
    """The tree of a script; and, where line continuations were removed, the map back to positions in the text."""
    if lexical.PLAIN_LINE.fullmatch(text) is not None and (script := _plain_line(text)) is not None:
        return script, None
    if "\0" in text:
        raise syntax.ShellSyntaxError("a NUL character", text.index("\0"))
    parser = Parser(text, depth)
    script = parser.whole()
    kept = [(cut, cut + 2 * count) for count, cut in enumerate(sorted(parser.cuts), 1)]
    return script, syntax.TextMap([(0, 0), *kept]) if kept else None


def _plain_line(text: str) -> syntax.Script | None:
    """A single command of plain words, as most commands are; None when its first word is more than a name."""
    words = [syntax.Word(None, *found.span(), found.group()) for found in lexical.BETWEEN_BLANKS.finditer(text)]
    first = words[0]
    if first.plain in RESERVED or first.plain in lexical.DECLARATIONS or len(words) > MAX_WORDS:
        return None
    simple = syntax.Simple([], words, [], first.start, len(text))
    return syntax.Script([syntax.AndOr([("", syntax.Pipeline([simple], negated=False, timed=False))])])


@dataclass(slots=True)
class Budget:
    """What the parsers of one text may still use up together."""

    commands: int = MAX_COMMANDS
    documents: int = MAX_HERE_DOCUMENTS
    cuts: int = MAX_CUTS


class Parser:
    """A position in the text of a script, and everything that can be read from there."""

    def __init__(self, text: str, depth: int = 0, budget: Budget | None = None) -> None:
        self.text = text
        self.size = len(text)
        self.position = 0
        self.depth = depth
        self.budget = Budget() if budget is None else budget
        self.waiting: list[syntax.Redirect] = []
        """Here-documents whose text starts after the next newline."""
        self.continued = "\\\n" in text
        self.cuts: list[int] = []
        """Where a backslash and newline inside a token were removed, as positions in the text as it is now."""
        self._peeked: tuple[int, str | None] = (-1, None)
        self._no_arithmetic: set[int] = set()
        """Where `((` was found to be two parentheses: it is not tried again, so nesting stays cheap."""
        self._no_end_ahead = False

    # Scripts

    def whole(self) -> syntax.Script:
        """The whole text as a script."""
        script = self.script()
        if self.position < self.size:
            raise self.fail(f"unexpected {self.peek()!r}")
        return script

    def script(self, until: str = "", words: tuple[str, ...] = ()) -> syntax.Script:
        """Lists up to a closing character or one of the reserved words; neither is consumed."""
        items: list[syntax.AndOr] = []
        while True:
            self.newlines()
            if self._ended(until, words):
                return syntax.Script(items)
            item = self._and_or()
            items.append(item)
            char = self.blanks()
            if char == "&":
                item.background = True
                self.position += 1
            elif char == ";":
                if self.text.startswith((";;", ";&"), self.position):
                    if ";;" in words:
                        return syntax.Script(items)
                    raise self.fail("unexpected ;;")
                self.position += 1
            elif char not in ("", "\n", until):
                # `( .. ) done`: after a compound command a reserved word needs no separator.
                may_close = bool(words and self.reserved(words))
                if not (may_close and isinstance(item.items[-1][1].commands[-1], syntax.Compound)):
                    raise self.fail(f"unexpected {char!r}")

    def _ended(self, until: str, words: tuple[str, ...]) -> bool:
        if self.position >= self.size or (until and self.at(until)):
            return True
        if not words:
            return False
        return (";;" in words and self.text.startswith((";;", ";&"), self.position)) or bool(self.reserved(words))

    def _and_or(self) -> syntax.AndOr:
        items = [("", self._pipeline())]
        while True:
            self.blanks()
            if self.continued:
                self.join_token()
            operator = self.text[self.position : self.position + 2]
            if operator != "&&" and operator != "||":
                return syntax.AndOr(items)
            self.position += 2
            self.newlines()
            items.append((operator, self._pipeline()))

    def _pipeline(self) -> syntax.Pipeline:
        first = self.lone_word()
        if first is not None and first not in RESERVED:  # as most commands start
            return self._piped(self.simple(), negated=False, timed=False)
        negated = timed = False
        while word := self.reserved(("!", "time")) or (self.at("!(") and "!"):
            self.position += len(word)
            self.blanks()
            if word == "!":
                negated = not negated
            else:
                timed = True
                while self.reserved(("-p", "--")):
                    self.position += 2
                    self.blanks()
            if self.blanks() in ("", "\n", ";", "&", ")") and not self.at("&>"):
                return syntax.Pipeline([], negated, timed)
        return self._piped(self._command(), negated=negated, timed=timed)

    def _piped(self, first: syntax.Command, *, negated: bool, timed: bool) -> syntax.Pipeline:
        """The pipeline that this command begins."""
        commands = [first]
        while True:
            if self.blanks() != "|" or self.at("||"):
                return syntax.Pipeline(commands, negated, timed)
            if self.at("|&"):
                last = commands[-1]
                joined = syntax.Redirect("2", ">&", syntax.Word([syntax.Literal("1")], self.position, self.position))
                (last.body if isinstance(last, syntax.Function) else last).redirects.append(joined)
                self.position += 1
            self.position += 1
            self.newlines()
            commands.append(self._command())

    def _command(self) -> syntax.Command:
        """Most commands start with a plain word that is not reserved."""
        word = self.lone_word()
        return self.command() if word is None or word in RESERVED else self.simple()

    # Compound commands

    def command(self) -> syntax.Command:
        if self.continued:
            self.join_token()
        start = self.position
        if self.at("("):
            return self._finished(self._parenthesis(), start)
        word = self.reserved(lexical.OPENERS)
        if word:
            self.enter()
            self.position += len(word)
            reader: Callable[[Parser, str], syntax.Command] = _READERS[word]
            node = reader(self, word)
            self.leave()
            return node if isinstance(node, syntax.Simple | syntax.Function) else self._finished(node, start)
        closer = self.reserved(lexical.CLOSERS)
        if closer:
            raise self.fail(f"unexpected {closer}")
        return self.simple()

    def _finished(self, node: syntax.Compound, start: int) -> syntax.Compound:
        node.redirects = self.redirects()
        node.start, node.end = start, self.position
        return node

    def _parenthesis(self) -> syntax.Compound:
        if self.at("(("):
            parts = self.arithmetic(self.position + 2)
            if parts is not None:
                return syntax.ArithmeticCommand(parts)
        self.position += 1
        return syntax.Block(self.until(")"), subshell=True)

    def _body(self, what: str, ends: tuple[str, ...]) -> tuple[syntax.Script, str]:
        """A script up to one of these words, which is consumed and returned."""
        script = self.script("", ends)
        end = self.reserved(ends)
        if not end:
            raise self.fail(f"unterminated {what}")
        if not script.items:
            raise self.fail(f"empty {what}")
        self.position += len(end)
        return script, end

    def _group(self, _: str) -> syntax.Block:
        return syntax.Block(self._body("{", ("}",))[0], subshell=False)

    def _if(self, _: str) -> syntax.If:
        branches: list[tuple[syntax.Script, syntax.Script]] = []
        while True:
            condition, _end = self._body("if", ("then",))
            body, end = self._body("then", ("elif", "else", "fi"))
            branches.append((condition, body))
            if end == "else":
                return syntax.If(branches, self._body("else", ("fi",))[0])
            if end == "fi":
                return syntax.If(branches, None)

    def _while(self, word: str) -> syntax.While:
        condition = self._body(word, ("do",))[0]
        return syntax.While(condition, self._body("do", ("done",))[0], until=word == "until")

    def _for(self, word: str) -> syntax.Compound:
        self.blanks()
        if self.at("((") and word == "for":
            parts = self.arithmetic(self.position + 2)
            if parts is None:
                raise self.fail("expected ))")
            if self.blanks() == ";":
                self.position += 1
            return syntax.ArithmeticFor(parts, self._loop_body())
        if self.continued:
            self.join_token()
        match = lexical.NAME.match(self.text, self.position)
        if match is None:
            raise self.fail("expected a name")
        self.position = match.end()
        self.newlines()
        words: list[syntax.Word] | None = None
        if self.reserved(("in",)):
            self.position += len("in")
            words = []
            while (char := self.blanks()) and char not in ";\n&|)":
                words.append(self._argument())
        if self.blanks() == ";":
            self.position += 1
        return syntax.For(match.group(), words, self._loop_body(), select=word == "select")

    def _loop_body(self) -> syntax.Script:
        self.newlines()
        if self.reserved(("{",)):
            self.position += 1
            return self._body("{", ("}",))[0]
        self.expect("do")
        return self._body("do", ("done",))[0]

    def _case(self, _: str) -> syntax.Case:
        self.blanks()
        subject = self._argument()
        self.expect("in")
        clauses: list[syntax.Clause] = []
        while True:
            self.newlines()
            if self.reserved(("esac",)):
                self.position += len("esac")
                return syntax.Case(subject, clauses)
            clauses.append(self._clause())

    def _clause(self) -> syntax.Clause:
        if self.at("("):
            self.position += 1
        patterns: list[syntax.Word] = []
        while True:
            self.blanks()
            patterns.append(self._argument())
            char = self.blanks()
            self.position += 1
            if char == ")":
                break
            if char != "|":
                raise self.fail("expected )")
        body = self.script("", ("esac", ";;"))
        for terminator in (";;&", ";;", ";&"):
            if self.at(terminator):
                self.position += len(terminator)
                return syntax.Clause(patterns, body, terminator)
        if not self.reserved(("esac",)):
            raise self.fail("expected ;; or esac")
        return syntax.Clause(patterns, body, "")

    def _condition(self, _: str) -> syntax.Condition:
        words: list[syntax.Word] = []
        matching = False
        while True:
            self.newlines()
            if self.position >= self.size:
                raise self.fail("unterminated [[")
            if self.reserved(("]]",)):
                self.position += 2
                return syntax.Condition(words)
            operator = next((text for text in _TEST_OPERATORS if self.at(text)), "")
            if matching:
                words.append(self._regular_expression())
                matching = False
            elif operator and not self.at("<(") and not self.at(">("):
                words.append(syntax.Word([syntax.Literal(operator)], self.position, self.position + len(operator)))
                self.position += len(operator)
            else:
                words.append(self._argument())
                matching = words[-1].literal() == "=~"

    def _regular_expression(self) -> syntax.Word:
        parts: list[syntax.Part] = []
        level, start = 0, self.position
        while self.position < self.size:
            char = self.text[self.position]
            if not level and (char in " \t\n)" or self.at("&&")):
                break
            if not level and char in "&;":
                raise self.fail(f"unexpected {char!r} in a pattern")
            level += (char == "(") - (char == ")")
            if not self._literal(lexical.LITERAL, parts) and not self.special(parts):
                self._plain(char, parts)
        if not parts:
            raise self.fail("expected a pattern")
        return syntax.Word(merged(parts), start, self.position)

    def _function(self, _: str) -> syntax.Function:
        self.blanks()
        name = self._argument()
        self.blanks()
        return self.function(name, with_parentheses=False)

    def function(self, name: syntax.Word, *, with_parentheses: bool = True) -> syntax.Function:
        """A function's definition, from after its name."""
        match = lexical.EMPTY_PARENTHESES.match(self.text, self.position)
        if match:
            self.position = match.end()
        elif with_parentheses:
            raise self.fail("expected )")
        self.newlines()
        self.enter()
        if self.position >= self.size:
            raise self.fail("expected a function's body")
        body = self.command()
        if isinstance(body, syntax.Simple | syntax.Function):
            raise self.fail("expected a function's body")
        self.leave()
        node = syntax.Function(name, body)
        node.start, node.end = name.start, self.position
        return node

    def _coprocess(self, _: str) -> syntax.Coprocess:
        self.blanks()
        if self.continued:
            self.join_token()
        match, name = lexical.NAME.match(self.text, self.position), "COPROC"
        if match and not self.reserved(lexical.OPENERS):
            start, self.position = self.position, match.end()
            if self.blanks() == "(" or self.reserved(lexical.OPENERS):
                name = match.group()
            else:
                self.position = start
        return syntax.Coprocess(name, self.command())

    # Simple commands

    def simple(self) -> syntax.Command:
        self.count_command()
        start, text = self.position, self.text
        assignments: list[syntax.Assignment] = []
        words: list[syntax.Word | syntax.Assignment] = []
        redirects: list[syntax.Redirect] = []
        declaring = False
        match_plain = lexical.PLAIN.match
        while True:
            plain = match_plain(text, self.position)
            if plain:
                text_of = plain[1]
                self.position = end = plain.end()
                words.append(syntax.Word(None, end - len(text_of), end, text_of))
            else:
                char = self.blanks()
                if char in _ENDS_SIMPLE or (char == "&" and not self.at("&>")):
                    break
                if self.continued:
                    self.join_token()
                if (char in "<>&{" or char.isdigit()) and (redirect := self.redirect()):
                    redirects.append(redirect)
                elif char == "(":
                    if len(words) == 1 and isinstance(words[0], syntax.Word) and not assignments and not redirects:
                        return self.function(words[0])
                    raise self.fail("unexpected (")
                else:
                    match = lexical.ASSIGNMENT.match(self.text, self.position) if not words or declaring else None
                    found = self._assignment(match[1], match[2], match.end()) if match else self._argument()
                    if isinstance(found, syntax.Assignment) and not declaring:
                        assignments.append(found)
                    else:
                        words.append(found)
                text = self.text
            if len(words) == 1 and not declaring:
                first = words[0]
                declaring = isinstance(first, syntax.Word) and (first.plain or first.literal()) in lexical.DECLARATIONS
            elif len(words) > MAX_WORDS:
                raise syntax.TooLarge("more words than are judged", self.position)
        if not (words or assignments or redirects):
            raise self.fail("expected a command")
        return syntax.Simple(assignments, words, redirects, start, self.position, declaring)

    def _argument(self) -> syntax.Word:
        word = self.word()
        if word is None:
            raise self.fail(f"unexpected {self.peek()!r}")
        return word

    def _assignment(self, name: str, operator: str, end: int) -> syntax.Assignment | syntax.Word:
        """An assignment, or the word that only started like one (`a[1]x`)."""
        start, index = self.position, None
        self.position = end
        if operator == "[":
            parts = self.index()
            match = lexical.EQUALS.match(self.text, self.position)
            if match is None:
                after = self.word()
                rest: Sequence[syntax.Part] = after.parts if after else ()
                return syntax.Word(
                    [syntax.Literal(f"{name}["), *parts, syntax.Literal("]"), *rest], start, self.position
                )
            index, operator = syntax.Word(parts, end, self.position - 1), match.group().replace("\\\n", "")
            self.position = match.end()
        is_array = self.at("(")
        self.position += is_array
        elements = self._array() if is_array else None
        value = (None if is_array else self.word()) or syntax.Word([], self.position, self.position)
        assignment = syntax.Assignment(name, index, operator == "+=", value, elements)
        assignment.start, assignment.end = start, self.position
        return assignment

    def _array(self) -> list[tuple[syntax.Word | None, syntax.Word]]:
        self.enter()
        elements: list[tuple[syntax.Word | None, syntax.Word]] = []
        while True:
            self.newlines()
            if self.position >= self.size:
                raise self.fail("unterminated array")
            if self.at(")"):
                break
            if self.continued:
                self.join_token()
            index = self._element_index() if self.at("[") else None
            word = self.word()
            if word is None and index is None:
                raise self.fail(f"unexpected {self.peek()!r} in an array")
            elements.append((index, word or syntax.Word([], self.position, self.position)))
            if len(elements) > MAX_WORDS:
                raise syntax.TooLarge("more elements than are judged", self.position)
        self.position += 1
        self.leave()
        return elements

    def _element_index(self) -> syntax.Word | None:
        start = self.position
        self.position += 1
        parts = self.index()
        match = lexical.EQUALS.match(self.text, self.position)
        if match is None:
            self.position = start
            return None
        word = syntax.Word(parts, start + 1, self.position - 1)
        self.position = match.end()
        return word

    def redirect(self) -> syntax.Redirect | None:
        match = lexical.REDIRECT.match(self.text, self.position)
        if match is None:
            return None
        descriptor, operator, both = match.groups()
        operator = operator or both
        if operator in ("<", ">") and not descriptor and self.text.startswith("(", match.end()):
            return None  # a process substitution
        self.position = match.end()
        if self.blanks(comments=False) in ("#", "\n", ""):
            raise self.fail("expected a target")
        if operator in (">&", "<&") and self.at("-"):  # what follows the dash is a separate word
            self.position += 1
            dash = syntax.Word([syntax.Literal("-")], self.position - 1, self.position)
            return syntax.Redirect(descriptor or "", operator, dash)
        target = self.word()
        if target is None:
            raise self.fail("expected a target")
        redirect = syntax.Redirect(descriptor or "", operator, target)
        if operator in ("<<", "<<-"):
            delimiter = _delimiter(target)
            if delimiter is None:
                raise self.fail("a delimiter that is not plain")
            redirect.delimiter = delimiter
            redirect.quoted = target.literal() is None
            self.waiting.append(redirect)
            if len(self.waiting) > MAX_HERE_DOCUMENTS:
                raise syntax.TooLarge("more here-documents than are judged", self.position)
        return redirect

    def redirects(self) -> list[syntax.Redirect]:
        """The redirections after a compound command."""
        found: list[syntax.Redirect] = []
        while True:
            self.blanks()
            if self.continued:
                self.join_token()
            redirect = self.redirect()
            if redirect is None:
                return found
            found.append(redirect)

    # Here-documents

    def read_document(self, redirect: syntax.Redirect) -> None:
        """The text of a here-document, which starts here."""
        self.budget.documents -= 1
        if self.budget.documents < 0:
            raise syntax.TooLarge("more here-documents than are judged", self.position)
        start = self.position
        body, kept, verbatim = self._plain_document(redirect) or self._document_by_lines(redirect)
        if redirect.quoted:
            parts: list[syntax.Part] = [syntax.Quoted(body, start if verbatim else -1)]
        else:
            parts = [syntax.DoubleQuoted(self.inside(body).quoted_parts(lexical.IN_HERE, ""))]
        redirect.body = syntax.Word(parts, start, self.position)
        redirect.origin = syntax.TextMap(kept)

    def _plain_document(self, redirect: syntax.Redirect) -> tuple[str, list[tuple[int, int]], bool] | None:
        """The same as `_document_by_lines`, in one step, for a text that is verbatim in the source."""
        if redirect.operator == "<<-":
            return None
        text, start, delimiter = self.text, self.position, redirect.delimiter
        end = start - 1 if text.startswith(delimiter + "\n", start) else text.find(f"\n{delimiter}\n", start - 1)
        if end < 0 or not delimiter or (not redirect.quoted and text.find("\\\n", start, end + 1) >= 0):
            return None
        self.position = end + len(delimiter) + 2
        return text[start : end + 1], [(0, start)], True

    def _document_by_lines(self, redirect: syntax.Redirect) -> tuple[str, list[tuple[int, int]], bool]:
        """The text up to the delimiter, where its lines were, and whether they are verbatim in the source."""
        position, strip = self.position, redirect.operator == "<<-"
        lines: list[str] = []
        kept: list[tuple[int, int]] = []
        length, verbatim = 0, True
        while position < self.size:
            line, end = self._document_line(position, joined=not redirect.quoted)
            stripped = line.lstrip("\t") if strip else line
            source, position = position, min(end + 1, self.size)
            if stripped == redirect.delimiter:
                break
            verbatim = verbatim and len(stripped) == end - source
            kept.append((length, source + len(line) - len(stripped)))
            lines.append(stripped + "\n")
            length += len(stripped) + 1
        self.position = position
        return "".join(lines), kept, verbatim

    def _document_line(self, position: int, *, joined: bool) -> tuple[str, int]:
        """One line from here without its newline, and the position of that; a backslash at the end joins the next line."""
        pieces: list[str] = []
        while (end := self.text.find("\n", position)) >= 0:
            line = self.text[position:end]
            if not joined or (len(line) - len(line.rstrip("\\"))) % 2 == 0:
                return "".join([*pieces, line]), end
            pieces.append(line[:-1])
            position = end + 1
        return "".join([*pieces, self.text[position:]]), self.size

    # Words

    def inside(self, text: str) -> Parser:
        """A parser of a text that was taken out of this one, under the same limits."""
        return Parser(text, self.depth, self.budget)

    def word(self) -> syntax.Word | None:
        text, start = self.text, self.position
        parts: list[syntax.Part] = []
        while self.position < self.size:
            match = lexical.LITERAL.match(text, self.position)
            if match is None:
                if not self.special(parts):
                    break
                text = self.text  # line continuations may have been removed from it
                if len(parts) > MAX_PARTS:
                    raise syntax.TooLarge("a word of more parts than are judged", self.position)
                continue
            literal = match.group()
            self.position = match.end()
            parts.append(syntax.Literal(literal))
            if literal[-1] in "@?*+!" and self.at("("):
                self._pattern_list(parts)
                text = self.text
        return syntax.Word(merged(parts), start, self.position) if parts or self.position > start else None

    def special(self, parts: list[syntax.Part]) -> bool:
        """A quote or an expansion here, outside quotes; False when there is none."""
        char = self.text[self.position]
        if char == "\\":
            following = self.text[self.position + 1 : self.position + 2]
            if following != "\n":
                parts.append(syntax.Quoted(following or "\\", self.position + 1 if following else -1))
            self.position += 2 if following else 1
        elif char == "'":
            end = self.text.find("'", self.position + 1)
            if end < 0:
                raise self.fail("unterminated '")
            parts.append(syntax.Quoted(self.text[self.position + 1 : end], self.position + 1))
            self.position = end + 1
        elif char == '"':
            parts.append(self.double())
        elif char == "$":
            parts.append(self.dollar(in_double=False))
        elif char == "`":
            parts.append(self.backquote(in_double=False))
        elif char in "<>" and self.text.startswith("(", self.position + 1):
            self.position += 2
            parts.append(syntax.ProcessSubstitution(self.substituted(), char))
        else:
            return False
        return True

    def _next_in(self, what: str, parts: Sequence[syntax.Part]) -> str:
        """The character here, inside of something that has to end, and of which these parts have been read."""
        if self.position >= self.size:
            raise self.fail(f"unterminated {what}")
        if len(parts) > MAX_PARTS:
            raise syntax.TooLarge(f"a {what} of more parts than is judged", self.position)
        return self.text[self.position]

    def _literal(self, pattern: re.Pattern[str], parts: list[syntax.Part]) -> bool:
        """Take the text that the pattern matches here; whether there is some."""
        match = pattern.match(self.text, self.position)
        if match:
            self._plain(match.group(), parts)
        return match is not None

    def _plain(self, text: str, parts: list[syntax.Part]) -> None:
        parts.append(syntax.Literal(text))
        self.position += len(text)

    def _pattern_list(self, parts: list[syntax.Part]) -> None:
        """`@(a|b)` and the like, kept as written."""
        self.enter()
        level = 0
        while True:
            char = self._next_in("pattern", parts)
            level += (char == "(") - (char == ")")
            if self._literal(lexical.LITERAL, parts):
                pass
            elif char in "()|;&<> \t\n" and not (char in "<>" and self.text.startswith("(", self.position + 1)):
                self._plain(char, parts)
            else:
                self.special(parts)
            if level == 0:
                break
        self.leave()

    def double(self) -> syntax.DoubleQuoted:
        self.position += 1
        self.enter()
        parts = self.quoted_parts(lexical.IN_DOUBLE, '"')
        self.leave()
        return syntax.DoubleQuoted(parts)

    def quoted_parts(self, literal: re.Pattern[str], end: str) -> list[syntax.Part]:
        """The inside of `".."` up to its end, which is consumed; with no `end`, a here-document's whole text."""
        parts: list[syntax.Part] = []
        while True:
            match = literal.match(self.text, self.position)
            if match:
                parts.append(syntax.Quoted(match.group(), self.position))
                self.position = match.end()
            if self.position >= self.size:
                if end:
                    raise self.fail(f"unterminated {end}")
                return parts
            char = self.text[self.position]
            if char == end:
                self.position += 1
                return parts
            if len(parts) > MAX_PARTS:
                raise syntax.TooLarge("a text of more parts than are judged", self.position)
            if char == "\\":
                self._escape_in_quotes(parts, end)
            elif char == "$":
                parts.append(self.dollar(in_double=True))
            elif char == "`":
                parts.append(self.backquote(in_double=bool(end)))
            else:
                parts.append(syntax.Quoted(char, self.position))
                self.position += 1

    def _escape_in_quotes(self, parts: list[syntax.Part], end: str) -> None:
        following = self.text[self.position + 1 : self.position + 2]
        if following in ("$", "`", "\\") or (following == '"' and end == '"'):
            parts.append(syntax.Quoted(following, self.position + 1))
        elif following != "\n":
            parts.append(syntax.Quoted("\\" + following, self.position))
        self.position = min(self.position + 2, self.size)

    def backquote(self, *, in_double: bool) -> syntax.Substitution:
        text, start = self.text, self.position + 1
        pieces, kept, length, last, place = [], [(0, start)], 0, start, start
        escapable = '`\\$\n"' if in_double else "`\\$\n"
        stop = re.compile(r"[`\\]")
        while True:
            found = stop.search(text, place)
            if found is None:
                raise self.fail("unterminated `")
            place = found.start()
            if text[place] == "`":
                break
            following = text[place + 1 : place + 2]
            if following in tuple(escapable):
                pieces.append(text[last:place])
                length += place - last
                last = place + 1 + (following == "\n")  # gone, even inside single quotes and comments
                kept.append((length, last))
            place += 2
        pieces.append(text[last:place])
        self.position = place + 1
        self.enter()
        self.count_command()
        script = self.inside("".join(pieces)).whole()
        self.leave()
        return syntax.Substitution(script, syntax.TextMap(kept))

    def until(self, end: str) -> syntax.Script:
        """A script up to its closing character, from just after the opening one."""
        self.enter()
        script = self.script(end)
        if not self.at(end):
            raise self.fail(f"expected {end}")
        self.position += 1
        self.leave()
        return script

    def substituted(self, end: str = ")") -> syntax.Script:
        """The script of `$(..)` and the like. A here-document in it must end inside."""
        outer, self.waiting = self.waiting, []  # the text of an outer one starts after the line that ends this
        script = self.until(end)
        if self.waiting:
            raise self.fail("a here-document without its text")
        self.waiting = outer
        return script

    def dollar(self, *, in_double: bool) -> syntax.Part:
        if self.continued:
            self.join_token()
        text, start = self.text, self.position
        following = text[start + 1 : start + 2]
        if following == "(":
            if text.startswith("((", start + 1):
                inside = self.arithmetic(start + 3)
                if inside is not None:
                    return syntax.Arithmetic(inside)
            self.position = start + 2
            return syntax.Substitution(self.substituted())
        if following == "{":
            return self.braced(in_double)
        if following == "[":
            self.position += 2
            self.enter()
            inside = self.index(None)
            self.leave()
            return syntax.Arithmetic(inside)
        if following == "'" and not in_double:
            match = _IN_DECODED.match(text, start + 2)
            if match is None:
                raise self.fail("unterminated $'")
            self.position = match.end()
            return syntax.Quoted(lexical.decode_escapes(match[1], dollar=True))
        if following == '"' and not in_double:
            self.position += 1
            return self.double()
        match = lexical.AFTER_DOLLAR.match(text, start + 1)
        if match:
            self.position = match.end()
            return syntax.Parameter(match.group())
        self.position += 1
        return syntax.Quoted("$", start) if in_double else syntax.Literal("$")

    # Parameters and arithmetic

    def arithmetic(self, start: int) -> list[syntax.Part] | None:
        """The inside of `((..))` from `start`, or None when it turns out to be two parentheses."""
        begin, waiting = self.position, len(self.waiting)
        if self._no_end_ahead or begin in self._no_arithmetic:
            return None
        self.position = start
        self.enter()
        try:
            parts = self._arithmetic_parts()
        except syntax.TooLarge:
            raise
        except syntax.ShellSyntaxError:
            parts = None
        finally:
            self.leave()
        if parts is None:
            self._no_arithmetic.add(begin)
            self.position = begin
            del self.waiting[waiting:]
        return parts

    def _arithmetic_parts(self) -> list[syntax.Part] | None:
        parts: list[syntax.Part] = []
        level = 0
        while True:
            self._literal(lexical.IN_ARITHMETIC, parts)
            if self.position >= self.size:
                self._no_end_ahead = True
                return None
            if len(parts) > MAX_PARTS:
                raise syntax.TooLarge("arithmetic of more parts than is judged", self.position)
            char = self.text[self.position]
            if char == ")" and not level:
                if not self.at("))"):
                    return None
                self.position += 2
                return merged(parts)
            if char in "()":
                level += 1 if char == "(" else -1
                self._plain(char, parts)
            else:
                self.special(parts)

    def index(self, forbidden: re.Pattern[str] | None = _ENDS_COMMAND) -> list[syntax.Part]:
        """The inside of brackets; the closing one is consumed.

        Whether bash takes `a[x; y]` for an index or for the end of a command depends on what came before, and `}` ends an
        expansion whatever is open in it: both are refused, so that no command can hide there.
        """
        parts: list[syntax.Part] = []
        level = 0
        while True:
            char = self._next_in("[", parts)
            if char == "]" and not level:
                self.position += 1
                return merged(parts)
            level += (char == "[") - (char == "]")
            match = lexical.IN_INDEX.match(self.text, self.position)
            if forbidden is not None and forbidden.search(match.group() if match else char):
                raise self.fail("an index with what may end it")
            if match:
                self._plain(match.group(), parts)
            elif char in "[]" or not self.special(parts):
                self._plain(char, parts)

    def braced(self, in_double: bool) -> syntax.Part:
        """`${..}`, from its dollar."""
        self.enter()
        self.position += 2
        if self.peek() in (" ", "\t", "\n", "|"):  # `${ command; }`, in newer shells
            self.position += self.peek() == "|"
            self.leave()
            return syntax.Substitution(self.substituted("}"))
        length, indirect = self._prefix()
        match = lexical.IN_BRACES.match(self.text, self.position)
        if match is None:
            raise self.fail("bad substitution")
        name, index = match.group(), None
        self.position = match.end()
        if self.at("["):
            start = self.position = self.position + 1
            index = syntax.Word(self.index(_ENDS_EXPANSION), start, self.position - 1)
        part = syntax.Parameter(name, index, "length" if length else "", None, None, indirect)
        if indirect and _PREFIX_END.match(self.text, self.position):
            part.operator = "prefix"
            self.position += 1
        elif not self.at("}"):
            self._operation(part, in_double)
        if not self.at("}"):
            raise self.fail("expected }")
        self.position += 1
        self.leave()
        return part

    def _prefix(self) -> tuple[bool, bool]:
        """Whether `#` (length) or `!` (indirection) comes before the name; consumed."""
        char = self.peek()
        if char == "#":
            special = _LENGTH_OF_SPECIAL.match(self.text, self.position)
            length = bool(special) or not _PLAIN_HASH.match(self.text, self.position)
            self.position += length
            return length, False
        following = self.text[self.position + 1 : self.position + 2]
        indirect = char == "!" and following not in ("}", ":", "-", "=", "?", "+", "#", "%", "/", "")
        self.position += indirect
        return False, indirect

    def _operation(self, part: syntax.Parameter, in_double: bool) -> None:
        match = lexical.PARAMETER_OPERATOR.match(self.text, self.position)
        if match is None or part.operator == "length":
            raise self.fail("bad substitution")
        operator = match.group()
        self.position = match.end()
        if operator[0] == "/":
            if operator == "/" and self.peek() in ("#", "%"):
                operator += self.peek()
                self.position += 1
            part.argument = self._operand(in_double, stop="/", pattern=True)
            if self.at("/"):
                self.position += 1
                part.second = self._operand(in_double, pattern=True)
        elif operator == ":":
            part.argument = self._operand(in_double, stop=":")
            if self.at(":"):
                self.position += 1
                part.second = self._operand(in_double)
        else:
            part.argument = self._operand(in_double, pattern=operator[0] in "#%^,@")
        part.operator = operator

    def _operand(self, in_double: bool, *, stop: str = "", pattern: bool = False) -> syntax.Word:
        """The word after an operator, up to `}` or `stop`. Quotes in a pattern are quotes, also inside double quotes."""
        parts: list[syntax.Part] = []
        start = self.position
        while True:
            char = self._next_in("${", parts)
            if char == "}" or (char == stop and (char != "/" or self.position > start)):
                return syntax.Word(merged(parts), start, self.position)
            match = lexical.IN_PARAMETER.match(self.text, self.position)
            if match:
                begin = self.position + (stop == "/" and self.position == start)
                cut = self.text.find(stop, begin, match.end()) if stop else -1
                text = match.group() if cut < 0 else self.text[self.position : cut]
                parts.append(syntax.Quoted(text) if in_double and not pattern else syntax.Literal(text))
                self.position += len(text)
            elif in_double and char == "'":
                self._single_quote_in_double(parts, pattern)
            elif in_double and char == "\\" and not self.text.startswith(_ESCAPED_IN_DOUBLE, self.position + 1):
                parts.append(syntax.Quoted(self.text[self.position : self.position + 2]))
                self.position += 2
            elif not self.special(parts):
                self._plain(char, parts)

    def _single_quote_in_double(self, parts: list[syntax.Part], pattern: bool) -> None:
        """Bash pairs single quotes even inside `"${x:-'..'}"`: they are kept there, and quote in a pattern."""
        end = self.text.find("'", self.position + 1)
        if end < 0:
            raise self.fail("unterminated '")
        inside = self.text[self.position + 1 : end]
        if pattern:
            parts.append(syntax.Quoted(inside))
        else:
            parts += [syntax.Quoted("'"), *self.inside(inside).quoted_parts(lexical.IN_HERE, ""), syntax.Quoted("'")]
        self.position = end + 1

    # The scanner

    def fail(self, why: str) -> syntax.ShellSyntaxError:
        return syntax.ShellSyntaxError(why, self.position)

    def enter(self) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise syntax.TooLarge("nested too deeply", self.position)

    def leave(self) -> None:
        self.depth -= 1

    def count_command(self) -> None:
        self.budget.commands -= 1
        if self.budget.commands < 0:
            raise syntax.TooLarge("more commands than are judged", self.position)

    def peek(self) -> str:
        return self.text[self.position : self.position + 1]

    def at(self, prefix: str) -> bool:
        return self.text.startswith(prefix, self.position)

    def blanks(self, *, comments: bool = True) -> str:
        """Skip blanks, line continuations and a comment; returns the next character."""
        text, position = self.text, self.position
        while True:
            char = text[position : position + 1]
            if char == " " or char == "\t":
                position += 1
            elif char == "\\" and text.startswith("\n", position + 1):
                position += 2
            elif char == "#" and comments:
                end = text.find("\n", position)
                position = end if end >= 0 else self.size
            else:
                self.position = position
                return char

    def newlines(self) -> None:
        """Skip blanks, comments and newlines, and read the here-documents that are due."""
        while self.blanks() == "\n":
            self.newline()

    def newline(self) -> None:
        self.position += 1
        if self.waiting:
            waiting, self.waiting = self.waiting, []
            for redirect in waiting:
                self.read_document(redirect)

    def join_token(self) -> None:
        """Remove a backslash and newline inside a token, as bash does before it looks for tokens.

        Elsewhere they are simply skipped.
        """
        while match := lexical.CUT_TOKEN.match(self.text, self.position):
            self.budget.cuts -= 1
            if self.budget.cuts < 0:
                raise syntax.TooLarge("more line continuations than are judged", self.position)
            cut = match.end() - 2
            self.text = self.text[:cut] + self.text[cut + 2 :]
            self.size -= 2
            self.cuts.append(cut)
            self._peeked = (-1, None)

    def reserved(self, words: tuple[str, ...] | frozenset[str]) -> str | None:
        """The unquoted word here, if it is complete and one of these. It is not consumed."""
        word = self.lone_word()
        return word if word in words else None

    def lone_word(self) -> str | None:
        """The unquoted word here, if it is complete: nothing quoted or expanded is attached to it."""
        if self._peeked[0] != self.position:
            if self.continued:
                self.join_token()
            match = lexical.LITERAL.match(self.text, self.position)
            found = match.group() if match is not None else None
            if match is not None and (end := match.end()) < self.size:
                sign = self.text[end]
                if sign not in lexical.WORD_ENDS or (sign in "<>" and self.text[end + 1 : end + 2] == "("):  # time<(x)
                    found = None
            self._peeked = (self.position, found)
        return self._peeked[1]

    def expect(self, word: str) -> None:
        self.newlines()
        if not self.reserved((word,)):
            raise self.fail(f"expected {word}")
        self.position += len(word)


_READERS: dict[str, Callable[[Parser, str], syntax.Command]] = {
    "{": Parser._group, "if": Parser._if, "while": Parser._while, "until": Parser._while, "for": Parser._for,
    "select": Parser._for, "case": Parser._case, "[[": Parser._condition, "function": Parser._function,
    "coproc": Parser._coprocess,
}  # fmt: skip


def _delimiter(word: syntax.Word) -> str | None:
    """A here-document's delimiter: quotes are removed, nothing is expanded. None for one that is not plain text."""
    pieces = [one for part in word.parts for one in (part.parts if isinstance(part, syntax.DoubleQuoted) else [part])]
    texts = [piece.text for piece in pieces if isinstance(piece, syntax.Literal | syntax.Quoted)]
    return "".join(texts) if len(texts) == len(pieces) and "\n" not in "".join(texts) else None


def merged(parts: list[syntax.Part]) -> list[syntax.Part]:
    """The same with neighbouring plain parts of one kind joined."""
    if len(parts) < 2:
        return parts
    out: list[syntax.Part] = []
    for kind, group in itertools.groupby(parts, type):
        run = list(group)
        texts = [part.text for part in run if isinstance(part, syntax.Literal | syntax.Quoted)]
        if len(texts) < 2:
            out += run
        else:
            out.append(syntax.Literal("".join(texts)) if kind is syntax.Literal else syntax.Quoted("".join(texts)))
    return out
