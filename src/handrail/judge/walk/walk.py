"""Walk a parsed script as the shell would, without running anything, and have every command line judged.

What the walk knows is in `state`; where several things may have happened, all of them are followed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from ..grammar.parser import parse
from ..grammar.syntax import (
    AndOr,
    Command,
    Compound,
    Pipeline,
    ProcessSubstitution,
    Redirect,
    Script,
    ShellSyntaxError,
    Simple,
    Substitution,
    TooLarge,
    Word,
)
from ..values.assessment import Span
from ..values.word_values import EMPTY, UNKNOWN, Arg, Either, Taint, Value, either, joined, unknown
from .expansion import Expander
from .judgement import Judgement, Limit, Sink
from .shell_state import ShellState
from .source_map import Frame
from .state import State

MAX_NEST = 14


class Walk(ShellState):
    """A walk through one command and everything that it runs."""

    def __init__(self, judgement: Judgement, state: State) -> None:
        super().__init__(judgement, state)
        self.expander = Expander(self)
        self.frame = Frame()
        self.place: Span = (0, 0)
        """The simple command at hand, in the text of the frame."""
        self.nest = 0
        self.concurrent = 0
        """How many pipelines and background jobs stand around: a function that calls itself there is a bomb."""

    # What is run inside what

    @contextlib.contextmanager
    def nested(self) -> Iterator[None]:
        self.nest += 1
        if self.nest > MAX_NEST:
            self.nest -= 1
            raise Limit("commands nested too deeply")
        try:
            yield
        finally:
            self.nest -= 1

    @contextlib.contextmanager
    def subshell(self) -> Iterator[None]:
        """What is changed inside does not last."""
        mark = self.state.mark()
        with self.nested():
            yield
        self.state.undo(mark)

    @contextlib.contextmanager
    def inside(self, frame: Frame) -> Iterator[None]:
        """Walk in another text."""
        outer, place, self.frame = self.frame, self.place, frame
        try:
            yield
        finally:
            self.frame, self.place = outer, place

    # Scripts

    def script(self, script: Script, stdin: Value | None) -> Value:
        if len(script.items) == 1 and len(script.items[0].items) == 1 and not script.items[0].background:
            return self.pipeline(script.items[0].items[0][1], stdin)
        return joined([self._and_or(item, stdin) for item in script.items])

    def _and_or(self, item: AndOr, stdin: Value | None) -> Value:
        if item.background:
            self.concurrent += 1
            mark = self.state.mark()
            out = self._chain(item.items, stdin)
            self.state.undo(mark)
            self.concurrent -= 1
            return out
        return self._chain(item.items, stdin)

    def _chain(self, items: list[tuple[str, Pipeline]], stdin: Value | None) -> Value:
        """`a && b || c`: the first runs, each other one may. After `&&` all before it has happened."""
        if len(items) == 1:
            return self.pipeline(items[0][1], stdin)
        outs = [self.pipeline(items[0][1], stdin)]
        conditional = self.state.mark()
        for operator, pipeline in items[1:]:
            if operator == "||":
                self.state.perhaps(conditional)
                conditional = self.state.mark()
            outs.append(self.pipeline(pipeline, stdin))
        self.state.perhaps(conditional)
        return joined(outs)

    def pipeline(self, pipeline: Pipeline, stdin: Value | None) -> Value:
        commands = pipeline.commands
        if len(commands) == 1:
            return self.command(commands[0], stdin)
        self.concurrent += 1
        for command in commands:
            mark = self.state.mark()
            stdin = self.command(command, stdin)
            self.state.undo(mark)
        self.concurrent -= 1
        return EMPTY if stdin is None else stdin

    def command(self, node: Command, stdin: Value | None) -> Value:
        if type(node) is Simple:
            outs = self.worlds.each(lambda: self.simple(node, stdin))
            return outs[0] if len(outs) == 1 else either(outs) or EMPTY
        assert isinstance(node, Compound)
        self.judgement.step()
        self.place = (node.start, node.end)
        stdin, outputs = self.redirects(node.redirects, stdin)
        return self.emit(self.compound(node, stdin), outputs)

    def compound(self, node: Compound, stdin: Value | None) -> Value:
        raise NotImplementedError

    def simple(self, node: Simple, stdin: Value | None) -> Value:
        raise NotImplementedError

    # Streams

    def redirects(
        self, redirects: Sequence[Redirect], stdin: Value | None
    ) -> tuple[Value | None, list[tuple[str, Arg, bool]]]:
        """What the command reads, and the files that it writes: (operator, path, whether its output goes there)."""
        outputs: list[tuple[str, Arg, bool]] = []
        for redirect in redirects:
            operator = redirect.operator
            if operator in ("<<", "<<-", "<<<"):
                content = self._document(redirect)
                if redirect.descriptor in ("", "0"):
                    stdin = content
                else:
                    self.state.write(f"/dev/fd/{redirect.descriptor}", content)
                continue
            target = (self.expander.fields(redirect.target) or [Arg("")])[0]
            if operator == "<&":
                stdin = self.state.files.get(f"/dev/fd/{target}", stdin)
            elif operator in ("<", "<>"):
                content = self.read_file(target)
                if redirect.descriptor in ("", "0"):
                    stdin = content
                else:
                    self.state.write(f"/dev/fd/{redirect.descriptor}", content)
            if operator in (">", ">>", ">|", "&>", "&>>", "<>") or (operator == ">&" and not _is_descriptor(target)):
                whole = redirect.descriptor in ("", "1") and operator != "<>"
                outputs.append((operator, target, whole))
        return stdin, outputs

    def _document(self, redirect: Redirect) -> Value:
        if redirect.operator == "<<<":
            value = self.expander.one(redirect.target)
            return Value(value.text + "\n", value.taints, redirect.target)
        if redirect.body is None:
            return EMPTY
        if redirect.quoted:
            return self.expander.one(redirect.body)
        frame = Frame(self.frame, shift=0, text_map=redirect.origin)
        with self.inside(frame):
            value = self.expander.one(redirect.body)
        return Value(value.text, value.taints, Word([], redirect.body.start, redirect.body.end))

    def emit(self, out: Value, outputs: list[tuple[str, Arg, bool]]) -> Value:
        """Write what a command prints to where it is sent; what is left for the next one."""
        for operator, target, whole in outputs:
            self.on_write(target, operator, out)
            sink = self.judgement.sinks.get(target)
            if sink is not None:
                with self.inside(sink.frame), self.subshell():
                    self.script(sink.script, out)
            elif whole:
                path = self.path(target)
                before = self.state.files.get(path)
                self.state.write(path, joined([before, out]) if before is not None and ">>" in operator else out)
            if whole:
                out = EMPTY
        return out

    # Expansions that run something

    def substitute(self, part: Substitution) -> Value:
        frame = self.frame if part.origin is None else Frame(self.frame, shift=0, text_map=part.origin)
        with self.inside(frame), self.subshell():
            return self.script(part.script, None)

    def process(self, part: ProcessSubstitution) -> str:
        path = f"/dev/fd/{63 + len(self.judgement.sinks)}"
        self.judgement.sinks[path] = Sink(part.script, self.frame)
        if part.direction == "<":
            with self.inside(self.frame), self.subshell():
                content = self.script(part.script, None)
            self.state.write(path, content)
        else:
            with self.inside(self.frame), self.subshell():
                self.script(part.script, EMPTY)  # it runs even if nobody writes to it; what is written comes later
            self.state.write(path, EMPTY)
        return path

    def prompt(self, text: Value) -> Value:
        """A text in which the shell still makes substitutions: `${x@P}`, PS4, a variable in arithmetic."""
        if isinstance(text, Either):
            return unknown(text.taints)
        if not text.known:
            self.report("dynamic.script", ["@P", text.text])
            return unknown(text.taints)
        if "$" not in text.text and "`" not in text.text:
            return text
        try:
            # A here-document's text is expanded just like a prompt.
            script, _ = parse("<<_\n" + text.text.replace("\n_", "\n ") + "\n_\n", self.nest)
        except ShellSyntaxError:
            self.report("parse.error", [text.text])
            return unknown(text.taints)
        node = script.items[0].items[0][1].commands[0]
        body = node.redirects[0].body if isinstance(node, Simple) else None
        with self.inside(Frame(self.frame, whole=self.place)), self.nested():
            return self.expander.one(body)

    # Text that is a script

    def run_text(self, value: Value, stdin: Value | None, how: str, *, same_shell: bool = False) -> Value:
        """A text that a shell will read as a script."""
        if isinstance(value, Either):
            outs = []
            for option in value.options:
                mark = self.state.mark()
                outs.append(self.run_text(option or EMPTY, stdin, how, same_shell=same_shell))
                self.state.perhaps(mark)
            return either(outs) or EMPTY
        if not value.known and self._unknown_script(value, how):
            return unknown(value.taints)
        try:
            script, text_map = parse(value.text, self.nest)
        except TooLarge as error:
            raise Limit(str(error)) from error
        except ShellSyntaxError as error:
            self.report("parse.error", [how, str(error)])
            return unknown(value.taints)
        with self.inside(self.frame.inside(value.word, self.place, text_map)):
            if same_shell:
                with self.nested():
                    return self.script(script, stdin)
            with self.subshell(), self.child_shell():
                return self.script(script, stdin)

    def _unknown_script(self, value: Value, how: str) -> bool:
        """Ask about a script that is not all known. True when nothing is left of it to follow."""
        alone = value.text.strip() == UNKNOWN
        if Taint.NETWORK in value.taints:
            self.report("rce.download_to_shell", [how, value.text])
        elif (alone or how in ("stdin", "eval", "source")) and not (
            Taint.INITIALISER in value.taints and how in ("eval", "source")
        ):
            self.report("dynamic.script", [how, value.text])
        return alone


def _is_descriptor(target: str) -> bool:
    return target == "-" or target.rstrip("-").isdigit()
