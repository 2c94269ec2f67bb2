"""Walk compound commands: every branch may be taken, every loop may run again."""

from __future__ import annotations

from collections.abc import Callable

from ..grammar.syntax import (
    ArithmeticCommand,
    ArithmeticFor,
    Block,
    Case,
    Compound,
    Condition,
    Coprocess,
    For,
    Function,
    If,
    While,
)
from ..programs.fork_bombs import is_endless, starts_and_goes_on
from ..values.word_values import EMPTY, UNKNOWN, Arg, Value, joined, unknown
from .state import Changes, Defined
from .walk import Walk

MAX_ROUNDS = 24


class CompoundWalk(Walk):
    """Walks compound commands."""

    def compound(self, node: Compound, stdin: Value | None) -> Value:
        return _WALKS[type(node)](self, node, stdin)

    def _block(self, node: Block, stdin: Value | None) -> Value:
        if not node.subshell:
            return self.script(node.body, stdin)
        with self.subshell():
            return self.script(node.body, stdin)

    def _if(self, node: If, stdin: Value | None) -> Value:
        outs: list[Value] = []
        branches: list[Changes] = []
        outs.append(self.script(node.branches[0][0], stdin))
        for number, (condition, body) in enumerate(node.branches):
            mark = self.state.mark()
            if number:
                outs.append(self.script(condition, stdin))
            outs.append(self.script(body, stdin))
            branches.append(self.state.take_back(mark))
        mark = self.state.mark()
        if node.otherwise is not None:
            outs.append(self.script(node.otherwise, stdin))
        branches.append(self.state.take_back(mark))
        self.state.one_of(branches)
        return joined(outs)

    def _while(self, node: While, stdin: Value | None) -> Value:
        def once() -> Value:
            return joined([self.script(node.condition, stdin), self.script(node.body, stdin)])

        if starts_and_goes_on(node.body) and is_endless(node):
            self.report("proc.fork_bomb", ["while"])
        return self._repeated(once)

    def _repeated(self, once: Callable[[], Value]) -> Value:
        """A body that runs any number of times: again, when the first round changed something for the second."""
        mark = self.state.mark()
        outs = [once()]
        if self.state.mark() > mark:
            outs.append(once())
        self.state.perhaps(mark)
        return joined(outs)

    def _for(self, node: For, stdin: Value | None) -> Value:
        outs = []
        for value in self._loop_values(node)[:MAX_ROUNDS]:
            self.assign(node.name, value)
            outs.append(self.script(node.body, stdin))
        return joined(outs)

    def _loop_values(self, node: For) -> list[Value]:
        if node.words is None:
            arguments = self.state.arguments
            values = [unknown()] if arguments is None else list(arguments)
        else:
            words = node.words
            found: list[list[Arg]] = self.worlds.each(lambda: self.expander.args(words))
            values = [arg.value() for args in found for arg in args]
        if len(values) > MAX_ROUNDS:
            return [*values[: MAX_ROUNDS - 1], unknown()]
        return values or [unknown()]

    def _arithmetic_for(self, node: ArithmeticFor, stdin: Value | None) -> Value:
        number = self.expander.parameters.number
        start, test, step = (*self.expander.text(node.parts).text.split(";"), "", "")[:3]
        if starts_and_goes_on(node.body) and test.strip() in ("", "1"):
            self.report("proc.fork_bomb", ["for"])
        number(Value(start))
        outs: list[Value] = []
        for _ in range(MAX_ROUNDS):
            if number(Value(test or "1")) == 0:
                break
            outs.append(self.script(node.body, stdin))
            number(Value(step))
        else:
            number(Value(f"{step},{step}".replace("=", f"={UNKNOWN}+") if "=" in step else step))
        return joined(outs)

    def _case(self, node: Case, stdin: Value | None) -> Value:
        self.expander.one(node.subject)
        outs: list[Value] = []
        branches: list[Changes] = [{}]
        for clause in node.clauses:
            for pattern in clause.patterns:
                self.expander.one(pattern)
            mark = self.state.mark()
            outs.append(self.script(clause.body, stdin))
            if clause.terminator in ("", ";;"):
                branches.append(self.state.take_back(mark))
            else:  # falls through to the next
                self.state.perhaps(mark)
        self.state.one_of(branches)
        return joined(outs)

    def _arithmetic(self, node: ArithmeticCommand, _: Value | None) -> Value:
        self.worlds.each(lambda: self.expander.parameters.arithmetic(node.parts))
        return EMPTY

    def _condition(self, node: Condition, _: Value | None) -> Value:
        for word in node.words:
            value = self.expander.one(word)
            if "[" in value.text and ("$(" in value.text or "`" in value.text):
                self.prompt(value)  # an index in `-v` and `-eq` is evaluated
        return EMPTY

    def _function(self, node: Function, _: Value | None) -> Value:
        self.state.define(self.expander.one(node.name).text, Defined(node.body, self.frame, self.level))
        return EMPTY  # what nobody calls is followed at the end

    def _coprocess(self, node: Coprocess, _: Value | None) -> Value:
        with self.subshell():
            return self.command(node.body, unknown())


_WALKS: dict[type[Compound], Callable[..., Value]] = {
    Block: CompoundWalk._block,
    If: CompoundWalk._if,
    While: CompoundWalk._while,
    For: CompoundWalk._for,
    ArithmeticFor: CompoundWalk._arithmetic_for,
    Case: CompoundWalk._case,
    ArithmeticCommand: CompoundWalk._arithmetic,
    Condition: CompoundWalk._condition,
    Function: CompoundWalk._function,
    Coprocess: CompoundWalk._coprocess,
}
