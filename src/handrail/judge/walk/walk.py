"""Walk a parsed script as the shell would, without running anything, and have every command line judged.

What the walk knows is in `state`; where several things may have happened, all of them are followed.

This file is longer than the others on purpose. A word can run a script, a script runs commands, and a command runs words and
scripts again, all on the same variables and files: that is one object. What it knows about single programs is handed in
(`Programs`). It reads from the whole to the parts: scripts, compound commands, simple commands, command lines, nested scripts,
redirections, and at the end the variables, files and findings.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import NamedTuple, Protocol

from ..grammar import syntax
from ..grammar.parser import parse
from ..programs.endless_loops import goes_on_writing, is_endless, makes_files, starts_and_goes_on
from ..programs.long_options import spelled_out
from ..programs.tables import LANGUAGES, SHELLS
from ..rules import Command as Line
from ..rules import Rulebook, on_assign, on_read, on_write
from ..values import paths
from ..values.assessment import Span
from ..values.data_files import Patterns, Words
from ..values.disk import NO_HOMES, Source, Sources
from ..values.taints import CREDENTIAL, ENDLESS, NETWORK, NO_TAINTS, PRIVATE, WIDE, Taint, Taints, taints_of
from ..values.word_values import EMPTY, UNKNOWN, Arg, Array, Either, OtherName, Stored, Value, either, joined, unknown
from .expansion import Expander
from .judgement import Judgement, Limit, Sink
from .operators import shell_quoted
from .state import Changes, Defined, Held, PathExploration, State
from .variables import Variables

_WORDS = Words(__file__)
_RE = Patterns(__file__)
MAX_NEST = 14
MAX_ROUNDS = (24, 6, 2, 1)
"""How often the body of a loop is walked, by how many loops surround it."""
MAX_REPEATS = 3
_FEW_LOOPS, _MANY_LOOPS = 2, 3
_DEEP_COST = 5
"""What a command inside of more loops counts: they multiply."""
MAX_RECURSION = 2
MAX_WRAPPERS = 24
_PROGRAM_FOLDERS = tuple("node_modules/.bin /usr/local/bin /usr/bin /bin /usr/local/sbin ~/bin ~/.local/bin".split())
_SHELL_READS = _WORDS.prompts | {"PROMPT_COMMAND", "PATH", "BASH_ARGV0"}
_TESTS = ("[", "[[")
_EMPTIES_STORE = r"(?im)^\s*(?:flushall|flushdb|flush_all|shutdown|config set|slaveof|replicaof)\b"
_MAX_APPENDED = 20_000
_FEW_LINES = 12
_MAX_KEPT_LINES = 2_000
_MAX_KEPT_INPUT = 1_000
_STANDARD = frozenset(("", "0", "1", "2"))
_HERE = frozenset(("", ".", ".."))
_normalised = functools.lru_cache(4096)(paths.normalise)


@dataclass(slots=True, eq=False)
class Call:
    """One command line, as handlers of programs see it."""

    name: str
    args: Sequence[Arg]
    stdin: Value | None
    program: Arg
    declared: Sequence[syntax.Assignment] = ()
    text: str = ""
    """The program and its arguments with blanks between: one look at it spares many looks at each of them."""

    @property
    def argv(self) -> list[Arg]:
        return [self.program, *self.args]


Handler = Callable[["Walk", Call], Value | None]
"""Follows what a program runs; returns what it prints, or None to leave that to the rest of the walk."""


class Known(NamedTuple):
    """What is known about a program, each None where it does nothing of the kind."""

    builtin: Handler | None
    """What one of the shell's own commands does."""
    follow: Handler | None
    """How to follow what it runs."""
    maker: Callable[[Walk, Call], None] | None
    """How to remember the files that it makes."""
    changer: Callable[[Walk, Call], Iterator[str]] | None
    """Which files it changes."""


class Programs(Protocol):
    """What is known about single programs: the module `program_handlers`, where each function says what it does."""

    def known(self, name: str) -> Known: ...
    def follower_of(self, name: str) -> Callable[[Walk, Call], None] | None: ...
    def follow_unlisted(self, walk: Walk, call: Call) -> None: ...
    def possible_names(self, name: Arg, rulebook: Rulebook) -> list[str] | None: ...
    def follow_files(self, walk: Walk, call: Call) -> None: ...
    def follow_place(self, walk: Walk, call: Call, text: str, *, everything: bool = True) -> None: ...
    def judge_settings(self, walk: Walk, call: Call, source: Source) -> None: ...
    def assign_new(self, walk: Walk, paths: Iterable[str] = ()) -> None: ...
    def source_file(self, walk: Walk, path: str, args: Sequence[Arg], stdin: Value | None) -> bool: ...
    def follow_variable(self, walk: Walk, name: str, value: Value) -> None: ...
    def note_effects(self, walk: Walk, call: Call, known: Known) -> None: ...
    def output(self, walk: Walk, call: Call) -> Value: ...


class Walk:
    """A walk through one command and everything that it runs."""

    def __init__(
        self,
        judgement: Judgement,
        state: State,
        programs: Programs,
        source_map: syntax.SourceMap,
        sources: Sources | None,
    ) -> None:
        self.judgement = judgement
        self.state = state
        self.programs = programs
        self.sources = sources
        """The files on the disk that programs would run; None when nothing may be looked up."""
        self.exploration = PathExploration(state)
        self.pick = self.exploration.pick
        self.expander = Expander(self)
        self.source_map = source_map
        self.place: Span = (0, 0)
        """The simple command at hand, in the text of the source map."""
        self.nest = 0
        self.concurrent = 0
        """How many pipelines and background jobs surround it: a function that calls itself there is a fork bomb."""
        self.under: tuple[str, ...] = ()
        """The programs that this one was started through, outermost first."""
        self.locals: dict[str, Stored | None] | None = None
        """The local variables of the function at hand, with their values outside of it; None outside of functions."""
        self.variables = Variables(self)
        self.lookup = self.variables.lookup
        self.assign = self.variables.assign
        self.spend = judgement.spend
        self.breaks = self.returns = 0
        """How many commands so far may have left a loop or a function early: what follows them may not run."""
        self._calls: tuple[int, ...] = ()
        """The functions being called, by the identity of their bodies: another shell may have one of the same name."""
        self._called: set[Defined] = set()
        self.loops = 0
        """How many loops surround the command at hand."""
        self._fills = 0
        """How many of them go on for ever without a pause."""
        self.readers = 0
        """How many pipes, redirections and substitutions read what the command at hand prints; without any it is not computed."""
        self.last_in_shell = False
        """Whether the last command of a pipeline runs in this shell: in zsh and ksh, and by `shopt -s lastpipe`."""

    def close(self) -> None:
        """Let go of what refers back to the walk: without this, all of it would wait for the garbage collector."""
        self.__dict__.clear()

    # Scripts

    def script(self, script: syntax.Script, stdin: Value | None) -> Value:
        if len(script.items) == 1 and len(script.items[0].items) == 1 and not script.items[0].background:
            return self.pipeline(script.items[0].items[0][1], stdin)
        outs: list[Value] = []
        marks: list[int] = []
        left = self.breaks + self.returns
        for item in script.items:
            if left != self.breaks + self.returns:  # what follows may not run
                left = self.breaks + self.returns
                marks.append(self.state.mark())
            outs.append(self._and_or(item, stdin))
        self._perhaps(marks)
        return joined(outs)

    def _perhaps(self, marks: list[int]) -> None:
        """What happened after each of these marks may not have happened."""
        for mark in reversed(marks):
            self.state.perhaps(mark)

    def _and_or(self, item: syntax.AndOr, stdin: Value | None) -> Value:
        self.concurrent += item.background
        mark = self.state.mark()
        out = self._chain(item.items, stdin)
        if item.background:
            self.state.undo(mark)
        self.concurrent -= item.background
        return out

    def _chain(self, items: list[tuple[str, syntax.Pipeline]], stdin: Value | None) -> Value:
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

    def pipeline(self, pipeline: syntax.Pipeline, stdin: Value | None) -> Value:
        commands = pipeline.commands
        if len(commands) == 1:
            return self.command(commands[0], stdin)
        if not commands:
            return EMPTY if stdin is None else stdin
        self.concurrent += 1
        self.readers += 1
        last = commands[-1]
        for command in commands:
            if command is last:
                self.readers -= 1
            mark = self.state.mark()
            stdin = self.command(command, stdin)
            if self.last_in_shell and command is last:
                self.state.perhaps(mark)
            else:
                self.state.undo(mark)
        self.concurrent -= 1
        return stdin or EMPTY

    def command(self, node: syntax.Command, stdin: Value | None) -> Value:
        if type(node) is syntax.Simple:
            outs = self.exploration.each(self.simple, node, stdin)
            return outs[0] if len(outs) == 1 else either(outs) or EMPTY
        assert isinstance(node, syntax.Compound)
        self.judgement.step(_DEEP_COST if self.loops > _MANY_LOOPS else 1)
        self.place = (node.start, node.end)
        if not node.redirects:
            return self.compound(node, stdin)
        stdin, outputs = self.redirects(node.redirects, stdin)
        self.readers += 1
        out = self.compound(node, stdin)
        self.readers -= 1
        return self.emit(out, outputs)

    # Compound commands: every branch may be taken, every loop may run again

    def compound(self, node: syntax.Compound, stdin: Value | None) -> Value:
        return _WALKS[type(node)](self, node, stdin)

    def _block(self, node: syntax.Block, stdin: Value | None) -> Value:
        if not node.subshell:
            return self.script(node.body, stdin)
        with self.subshell():
            return self.script(node.body, stdin)

    def _if(self, node: syntax.If, stdin: Value | None) -> Value:
        outs: list[Value] = []
        branches: list[Changes] = []
        outs.append(self.script(node.branches[0][0], stdin))
        for number, (condition, body) in enumerate(node.branches):
            mark = self.state.mark()
            if number:  # it runs before the branches after it too
                outs.append(self.script(condition, stdin))
                self.state.perhaps(mark)
                mark = self.state.mark()
            outs.append(self.script(body, stdin))
            branches.append(self.state.take_back(mark))
        mark = self.state.mark()
        if node.otherwise is not None:
            outs.append(self.script(node.otherwise, stdin))
        branches.append(self.state.take_back(mark))
        self.state.one_of(branches)
        return joined(outs)

    def _while(self, node: syntax.While, stdin: Value | None) -> Value:
        def once() -> Value:
            return joined([self.script(node.condition, stdin), self.script(node.body, stdin)])

        endless = is_endless(node)
        if endless and starts_and_goes_on(node.body):
            self.report("proc.fork_bomb", ["while"])
        with self._filling(node.body, endless):
            out = self._repeated(once)
        self._read_to_the_end(node.condition)
        return self._endless(out, node.body, endless)

    def _filling(self, body: syntax.Script, endless: bool) -> Held:
        """Inside a loop that may go on for ever: what each of its rounds appends to fills the disk."""
        fills = endless and goes_on_writing(body)
        if fills and makes_files(body):
            self.report("disk.fill", ["while"])
        return Held(self, _fills=self._fills + fills)

    def _endless(self, out: Value, body: syntax.Script, endless: bool) -> Value:
        return Value(out.text, out.taints | ENDLESS) if endless and out.text and goes_on_writing(body) else out

    def _read_to_the_end(self, condition: syntax.Script) -> None:
        """`while read x`: when there is nothing left to read, the variables are empty."""
        command = condition.items[-1].items[-1][1].commands[-1] if condition.items else None
        words = command.words if isinstance(command, syntax.Simple) else []
        if words and isinstance(words[0], syntax.Word) and words[0].literal() == "read":
            for word in words[1:]:
                name = word.literal() if isinstance(word, syntax.Word) else None
                old = self.state.variables.get(name) if name else None
                if name and isinstance(old, Value):
                    self.assign(name, either([old, EMPTY]))

    def _loop(self) -> Held:
        """Inside a loop. Leaving it early concerns nothing after it."""
        return Held(self, loops=self.loops + 1, breaks=self.breaks)

    def _rounds(self) -> int:
        """How many rounds of the loop at hand are walked."""
        return MAX_ROUNDS[min(self.loops, len(MAX_ROUNDS)) - 1]

    def _repeated(self, once: Callable[[], Value]) -> Value:
        """A body that runs any number of times: it is walked again until a round changes nothing."""
        outs: list[Value] = []
        marks: list[int] = []
        with self._loop():
            for _ in range(MAX_REPEATS if self.loops <= _FEW_LOOPS else 1):
                marks.append(self.state.mark())
                outs.append(once())
                if not (changing := self.state.changed(marks[-1])):
                    break
            else:
                marks.append(self.state.mark())
                self.state.forget(changing)  # one round for all further ones, in which what still changes is unknown
                outs.append(once())
        self._perhaps(marks)
        return joined(outs)

    def _for(self, node: syntax.For, stdin: Value | None) -> Value:
        outs: list[Value] = []
        marks: list[int] = []
        with self._loop():
            values = self._loop_values(node, self._rounds())
            if any(UNKNOWN in value.text for value in values):  # there may be none
                marks.append(self.state.mark())
            for value in values:
                left = self.breaks + self.returns
                self.assign(node.name, value)
                outs.append(self.script(node.body, stdin))
                if left != self.breaks + self.returns:
                    marks.append(self.state.mark())
        self._perhaps(marks)
        return joined(outs)

    def _loop_values(self, node: syntax.For, rounds: int) -> list[Value]:
        if node.words is None:
            arguments = self.state.arguments
            values = [unknown()] if arguments is None else list(arguments)
        else:
            words = node.words
            if self.loops > 1:
                self.judgement.step(len(words) // 8)
            found: list[list[Arg]] = self.exploration.each(self.expander.args, words)
            values = [arg.value() for args in found for arg in args]
            if any(isinstance(part, syntax.Substitution) for word in words for part in word.parts):
                values = [unknown(value.taints | WIDE) if value.text == UNKNOWN else value for value in values]
        if len(values) > rounds:
            return [*values[: rounds - 1], unknown(taints_of(values))]
        return values or [unknown()]

    def _arithmetic_for(self, node: syntax.ArithmeticFor, stdin: Value | None) -> Value:
        number = self.expander.number
        start, test, step = (*self.expander.text(node.parts).text.split(";"), "", "")[:3]
        endless = test.strip() in ("", "1")
        if endless and starts_and_goes_on(node.body):
            self.report("proc.fork_bomb", ["for"])
        number(Value(start))
        outs: list[Value] = []
        marks: list[int] = []

        def once() -> Value:
            out = self.script(node.body, stdin)
            number(Value(step))
            return out

        with self._loop(), self._filling(node.body, endless):
            for _ in range(self._rounds()):
                goes_on = number(Value(test.strip() or "1"))
                if goes_on == 0:
                    break
                left, mark = self.breaks + self.returns, self.state.mark()
                if goes_on is None:
                    marks.append(mark)
                outs.append(once())
                if left != self.breaks + self.returns:
                    marks.append(self.state.mark())
            else:
                changing = self.state.changed(mark)
                marks.append(self.state.mark())
                self.state.forget(changing)  # one round for all further ones, in which what still changes is unknown
                outs.append(once())
        self._perhaps(marks)
        return self._endless(joined(outs), node.body, endless)

    def _case(self, node: syntax.Case, stdin: Value | None) -> Value:
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

    def _arithmetic(self, node: syntax.ArithmeticCommand, _: Value | None) -> Value:
        self.exploration.each(self.expander.arithmetic, node.parts)
        return EMPTY

    def _condition(self, node: syntax.Condition, _: Value | None) -> Value:
        values = [self.expander.one(word) for word in node.words]
        for place, value in enumerate(values):
            if "[" in value.text and ("$(" in value.text or "`" in value.text):
                self.prompt(value)  # an index in `-v` is evaluated
            if value.text in _WORDS.compares_numbers:
                for side in values[max(0, place - 1) : place] + values[place + 1 : place + 2]:
                    self.expander.number(side)
            elif value.text == "=~":
                self.assign("BASH_REMATCH", None)
        return EMPTY

    def _function(self, node: syntax.Function, _: Value | None) -> Value:
        self.state.define(self.expander.one(node.name).text, Defined(node.body, self.source_map, self.variables.level))
        return EMPTY  # functions that are never called are followed at the end

    def _coprocess(self, node: syntax.Coprocess, _: Value | None) -> Value:
        with self.subshell():
            return self.command(node.body, unknown())

    # Simple commands and assignments

    def simple(self, node: syntax.Simple, stdin: Value | None) -> Value:
        self.place = (node.start, node.end)
        if not node.words:
            return self._only_assignments(node)
        declared: list[syntax.Assignment] = []
        words: list[syntax.Word] = node.words  # type: ignore[assignment]
        if node.declares:
            declared = [word for word in node.words if isinstance(word, syntax.Assignment)]
            words = [word for word in node.words if isinstance(word, syntax.Word)]
        argv = self.expander.args(words)
        if argv and argv[0] in _WORDS.deleters:
            _mark_lists(argv)
        if self.state.option_names:  # `*`, where a file is called `-rf`
            names = [Arg(name) for name in self.state.option_names if self.known_file(name) is not None]
            argv[1:1] = [name for name in names if any(arg.glob and fnmatchcase(name, arg) for arg in argv)]
        if stdin is None:
            stdin = self.state.settings.get("&0")
        if node.redirects:
            before = stdin
            stdin, outputs = self.redirects(node.redirects, stdin)
            if argv == ["exec"]:
                return self._exec(stdin if stdin is not before else None, outputs)
        else:
            outputs = []
        if not argv:
            for assignment in node.assignments:
                self.variables.make(assignment)
            return self.emit(EMPTY, outputs)
        self.readers += len(outputs)
        if node.assignments:
            out = self._with_assignments(node.assignments, argv, stdin)
        else:
            out = self.run(argv, stdin, declared=declared)
        self.readers -= len(outputs)
        if (target := self.state.settings.get("&1")) is not None and not outputs:
            self._write_output(self.path(target), out, appends=True)
        return self.emit(out, outputs) if outputs else out

    def _only_assignments(self, node: syntax.Simple) -> Value:
        for assignment in node.assignments:
            self.variables.make(assignment)
            value = self.state.variables.get(assignment.name)
            if assignment.name in self.variables.exported:
                self.on_assign(assignment.name, value)
            else:
                self._show_assignment(assignment.name, value)
        reads, outputs = self.redirects(node.redirects, None)
        if outputs:
            return self.emit(reads or EMPTY, outputs)
        return reads if reads is not None else EMPTY  # $(<file)

    def _with_assignments(
        self, assignments: Sequence[syntax.Assignment], argv: list[Arg], stdin: Value | None
    ) -> Value:
        """`A=1 command`: the variables hold while it runs."""
        before = {node.name: self.state.variables.get(node.name) for node in assignments}
        added = [node.name for node in assignments if node.name not in self.variables.exported]
        for node in assignments:
            self.variables.make(node)
            self.on_assign(node.name, self.state.variables.get(node.name))
        self.variables.exported.update(added)
        try:
            return self.run(argv, stdin)
        finally:
            self.variables.exported.difference_update(added)
            for name, value in before.items():
                self.state.assign(name, value)

    def on_assign(self, name: str, value: Stored | None) -> None:
        """A variable that programs will see: some of them make programs run or load something."""
        self._show_assignment(name, value)
        if isinstance(value, Value) and value.text:
            for option in _options(value):
                self.programs.follow_variable(self, name, option)

    def _show_assignment(self, name: str, value: Stored | None) -> None:
        """A variable that the shell itself looks at."""
        if not isinstance(value, Value):
            return
        if name == "PATH":  # a directory to which anyone can write
            in_front, rest, _ = value.text.partition(UNKNOWN)
            folders = in_front.split(":")[: -1 if rest else None]
            if any(folder in ("", ".") or self.is_foreign(folder) for folder in folders):
                self.report("env.path", ["PATH", value.text])
        elif name in _WORDS.prompts:
            for option in _options(value):
                if option.known:
                    self.prompt(option)
        elif name == "PROMPT_COMMAND":
            self.run_text(value, None, name)
        if matches := on_assign(name, value.text):
            self.judgement.add(matches, [name, value.text], self.span([]))

    # Command lines

    def run(
        self,
        argv: Sequence[Arg],
        stdin: Value | None,
        *,
        declared: Sequence[syntax.Assignment] = (),
        functions: bool = True,
        builtins: bool = True,
    ) -> Value:
        """Judge a command line; what it would print. `functions`: its name may be a function or an alias."""
        self.judgement.step(_DEEP_COST if self.loops > _MANY_LOOPS else 1)
        if not argv:
            return EMPTY
        name = argv[0]
        if UNKNOWN in name or not name or (_RE.globs.search(name) and name not in _TESTS):
            return self._unknown_name(argv, stdin, declared)
        if functions and (self.state.functions or self.state.aliases):
            found = self._alias_or_function(argv, stdin)
            if found is not None:
                return found
        base = name.rsplit("/", 1)[-1] if "/" in name else str(name)
        if base[-4:] == ".exe" or base[:1] == "^" or base[:2] == "e:":  # as nu and elvish mark programs
            base = base.removesuffix(".exe").lstrip("^").removeprefix("e:")
        text = " ".join(argv)
        argv = spelled_out(base, argv) if " --" in text else argv
        if self.judgement.recording:
            self.judgement.lines.append((argv, self.source_map, self.place, self.nest + len(self.under)))
        call = Call(base, argv[1:], stdin, name, declared, text)
        known = self.programs.known(base)
        out: Value | None = None
        if builtins and known.builtin is not None:
            out = known.builtin(self, call)
            if out is not None and base in _WORDS.self_contained:
                return out
        if self.state.files and (made := self._made_program(name, call)) is not None:
            return made
        if known.follow is None:
            self.programs.follow_unlisted(self, call)
        elif out is None:
            out = known.follow(self, call)
        self.show_to_rules(call)
        self.programs.note_effects(self, call, known)
        return out if out is not None else self.programs.output(self, call)

    def start(self, argv: Sequence[Arg], stdin: Value | None, *, under: str = "") -> Value:
        """A program that another one (`under`) starts: its name is never a function or a builtin."""
        if not under:
            return self.run(argv, stdin, functions=False, builtins=False)
        with self.wrapped(under), self.subshell():
            return self.run(argv, stdin, functions=False, builtins=False)

    def start_text(self, text: Value, stdin: Value | None, *, under: str) -> Value:
        """The same for a text that it passes to a shell."""
        with self.wrapped(under), self.subshell():
            return self.run_text(text, stdin, "-c")

    def show_to_rules(self, call: Call) -> None:
        """Have the rules judge a command line by itself, whatever it runs in turn."""
        judgement = self.judgement
        judgement.shown += 1
        key = _line_key(call, self.cwd) if judgement.shown > _FEW_LINES else None
        matches = judgement.judged.get(key) if key is not None else None
        if matches is None:
            line = Line(call.name, call.args, self.cwd, judgement.project, call.stdin, self.written_file, call.program)
            matches = judgement.rulebook.findings(line)
            if key is not None and not line.looked_up and len(judgement.judged) < _MAX_KEPT_LINES:
                judgement.judged[key] = matches
        if matches:
            argv = call.argv
            judgement.add(matches, argv, self.span(argv))

    def _unknown_name(self, argv: Sequence[Arg], stdin: Value | None, declared: Sequence[syntax.Assignment]) -> Value:
        """A name that is not known: every program that it may be is judged; when that is not known either, it is reported."""
        name = argv[0]
        names = self.programs.possible_names(name, self.judgement.rulebook)
        if self.sources is not None and "/" in name:
            self.programs.follow_files(self, Call(name.rpartition("/")[2], argv[1:], stdin, name, declared))
        if names is None:
            self.report("dynamic.command", argv)
            self.judgement.lines.append((argv, self.source_map, self.place, self.nest + len(self.under)))
            if name == UNKNOWN and not name.quoted and len(argv) > 1:
                self.run(argv[1:], stdin, declared=declared)  # it may be empty
            return unknown(name.taints)
        base = name.rpartition("/")[2]
        if base in self.state.file_names:  # find has found what the command itself has written
            for path, content in list(self.state.files.items()):
                if path.rpartition("/")[2] == base:
                    self.run_content(content, argv[1:], stdin, path)
        outs = [self.run([_named(name, candidate), *argv[1:]], stdin, declared=declared) for candidate in names]
        return either(outs) or EMPTY

    def _alias_or_function(self, argv: Sequence[Arg], stdin: Value | None) -> Value | None:
        name = str(argv[0])
        alias = self.state.aliases.get(name)
        if alias is not None:  # only an interactive shell expands it: the name itself is judged too
            self.state.alias(name, None)
            words = "".join(" " + shell_quoted(arg) for arg in argv[1:])
            for option in _options(alias):
                text = Value(option.text + words, option.taints | taints_of(argv))
                self.run_text(text, stdin, "alias", same_shell=True)
            self.state.alias(name, alias)
        found = self.state.functions.get(name)
        if not found:
            return None
        outs = [self._call(name, function, argv[1:], stdin) for function in found]
        # A shell that was started since has the function only if it was exported.
        return joined(outs) if all(function.level == self.variables.level for function in found) else None

    def _call(self, name: str, function: Defined, args: Sequence[Arg] | None, stdin: Value | None) -> Value:
        self._called.add(function)
        depth = self._calls.count(id(function.body))
        if depth and self.concurrent:
            self.report("proc.fork_bomb", [name])
            return unknown()
        if depth > MAX_RECURSION:
            return unknown()
        saved = self.state.arguments
        # The last call that is followed stands for all further ones: with any arguments.
        followed = args is not None and (depth < MAX_RECURSION or not args)
        self.state.arguments = tuple(arg.value() for arg in args or ()) if followed else None
        calls, self._calls = self._calls, (*self._calls, id(function.body))
        outer, self.locals = self.locals, {}
        references, returns, breaks = self.variables.references.copy(), self.returns, self.breaks
        try:
            with self.inside(function.source_map), self.nested():
                return self.command(function.body, stdin)
        finally:
            for variable, value in self.locals.items():
                self.state.assign(variable, value)
            self.variables.references = references
            self.returns, self.breaks = returns, breaks
            self.locals = outer
            self._calls = calls
            self.state.arguments = saved

    def definitions(self) -> None:
        """Follow the functions and aliases that nothing has called: a shell that lives on keeps them for later."""
        for name, functions in list(self.state.functions.items()):
            for function in functions:
                if function not in self._called:
                    self._call(name, function, None, unknown())
        for name, text in list(self.state.aliases.items()):
            self.state.alias(name, None)
            for option in _options(text):
                self.run_text(Value(f"{option.text} {UNKNOWN}", option.taints, option.word), None, "alias")

    def _made_program(self, name: Arg, call: Call) -> Value | None:
        """A program that the command itself has made: what was written into it is run."""
        path = str(name)
        if "/" not in path:
            path = self._in_search_path(path) if path in self.state.file_names else ""
        content = self.known_file(path) if path else None
        if content is None:
            return None
        program = self.state.settings["program"]
        if path in self.under or (program is not None and program.text == path):
            if self.concurrent:
                self.report("proc.fork_bomb", [path])
            return unknown()
        if path.startswith("/dev/") and not path.startswith("/dev/shm/"):
            return None
        if isinstance(content, OtherName):
            return self.run([name.like(content.program), *call.args], call.stdin, functions=False)
        return self.run_content(content, call.args, call.stdin, path)

    def _in_search_path(self, name: str) -> str:
        """Where a program is found, if this command put it into a directory of PATH."""
        search = self.state.variables.get("PATH")
        own = search.text.split(":")[:32] if isinstance(search, Value) and search is not self.state.first_path else []
        for directory in (*own, *_PROGRAM_FOLDERS):
            if self.known_file(f"{directory or '.'}/{name}") is not None:
                return f"{directory or '.'}/{name}"
        return ""

    def run_content(self, content: Value, args: Sequence[Arg], stdin: Value | None, path: str) -> Value:
        """A file that is run as a program: by its first line, else by the shell."""
        if isinstance(content, Either):
            outs = [self.run_content(option, args, stdin, path) for option in content.options if option is not None]
            return either(outs) or EMPTY
        if not content.known and content.text.strip() == UNKNOWN:
            self.report("rce.download_to_shell" if Taint.NETWORK in content.taints else "dynamic.script", [path])
            return unknown(content.taints)
        first, _, _ = content.text.partition("\n")
        interpreter = [Arg(part) for part in first[2:].split()] if first.startswith("#!") else [Arg("sh")]
        self.judgement.scripts += 1
        self.state.write(script := f"/dev/fd/script{self.judgement.scripts}", content)
        with self.wrapped(path):
            return self.run([*interpreter, Arg(script), *args], stdin, functions=False)

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
            script, text_map = parse(value.text.replace("\0", ""), self.nest)
        except syntax.TooLarge as error:
            raise Limit(str(error)) from error
        except syntax.ShellSyntaxError as error:
            replaced = self.handed_over(value.text)
            if replaced is not None and replaced.group() != value.text:
                return self.run_text(Value(replaced.group(), value.taints), stdin, how, same_shell=same_shell)
            self.report("parse.error", [how, str(error)])
            return unknown(value.taints)
        with self.inside(self.source_map.nested(value.word, self.place, text_map)):
            if same_shell:
                with self.nested():
                    return self.script(script, stdin)
            with self.subshell(), Held(self.variables, level=self.variables.level + 1):
                return self.script(script, stdin)

    def run_helper(self, text: Value, how: str, stdin: Value | None = None) -> None:
        """A command that an option or a variable gives to another program. One that lies where everybody writes is foreign."""
        words = text.text.split(None, 4)[:4]
        base = words[0].rpartition("/")[2] if words else ""
        starts_script = base in SHELLS or base.rstrip("0123456789.") in LANGUAGES or base in _WORDS.starters
        named = words if starts_script else words[:1]
        if any(word[:1] in ("/", ".") and self.is_foreign(word.strip("'\"")) for word in named):
            self.report("env.inject", [how, text.text])
        with self.subshell():
            self.run_text(text, stdin, how)

    def _unknown_script(self, value: Value, how: str) -> bool:
        """Report a script that is partly unknown. True when nothing of it is left to follow."""
        alone = value.text.strip() == UNKNOWN
        is_env_script = Taint.ENV_SCRIPT in value.taints and how in ("eval", "source")
        if Taint.NETWORK in value.taints:
            self.report("rce.download_to_shell", [how, value.text])
        elif (alone or how in ("stdin", "eval", "source")) and not is_env_script:
            self.report("dynamic.script", [how, value.text])
        return alone

    # Expansions that run something

    def substitute(self, part: syntax.Substitution) -> Value:
        outer = self.source_map
        inner = outer if part.origin is None else syntax.SourceMap(outer, shift=0, text_map=part.origin)
        with self.inside(inner), self.subshell():
            self.readers += 1
            out = self.script(part.script, None)
            self.readers -= 1
        if Taint.ENDLESS in out.taints:
            self.report("disk.fill", ["$(", out.text])
        return out

    def process(self, part: syntax.ProcessSubstitution) -> str:
        path = f"/dev/fd/{63 + len(self.judgement.sinks)}"
        self.judgement.sinks[path] = Sink(part.script, self.source_map)
        reads = part.direction == ">"  # it runs even if nothing writes to it; what is written comes later
        with self.inside(self.source_map), self.subshell():
            self.readers += 1
            content = self.script(part.script, EMPTY if reads else None)
            self.readers -= 1
        self.state.write(path, EMPTY if reads else content)
        return path

    def prompt(self, text: Value) -> Value:
        """A text in which the shell still makes substitutions: `${x@P}`, PS4, a variable in arithmetic."""
        if isinstance(text, Either):
            for option in _options(text):
                self.prompt(option)
            return unknown(text.taints)
        if not text.known:
            self.report("dynamic.script", ["@P", text.text])
            return unknown(text.taints)
        if "$" not in text.text and "`" not in text.text:
            return text
        try:
            # A here-document's text is expanded just like a prompt.
            script, _ = parse("<<_\n" + text.text.replace("\n_", "\n ") + "\n_\n", self.nest)
        except syntax.ShellSyntaxError:
            self.report("parse.error", [text.text])
            return unknown(text.taints)
        node = script.items[0].items[0][1].commands[0]
        body = node.redirects[0].body if isinstance(node, syntax.Simple) else None
        with self.inside(syntax.SourceMap(self.source_map, whole=self.place)), self.nested():
            return self.expander.one(body)

    # Redirections

    def redirects(
        self, redirects: Sequence[syntax.Redirect], stdin: Value | None
    ) -> tuple[Value | None, list[tuple[str, Arg, bool]]]:
        """What the command reads, and the files that it writes: (operator, path, whether its output goes there)."""
        outputs: list[tuple[str, Arg, bool]] = []
        for redirect in redirects:
            operator = redirect.operator
            is_text = operator in ("<<", "<<-", "<<<")
            target = Arg("") if is_text else (self.expander.fields(redirect.target) or [Arg("")])[0]
            content = self._document(redirect) if is_text else None
            if operator == "<&":
                stdin = unknown() if UNKNOWN in target else self.state.files.get(f"/dev/fd/{target}", stdin)
            elif operator in ("<", "<>"):
                content = self.read_file(target)
                can_look = self.sources is not None and UNKNOWN not in target
                if can_look and content.text == UNKNOWN and not content.taints:
                    content = OtherName(str(target))
            if content is not None and redirect.descriptor in ("", "0"):
                stdin = content
            elif content is not None:
                self.state.write(f"/dev/fd/{redirect.descriptor}", content)
            to_file = operator == ">&" and target != "-" and not target.rstrip("-").isdigit()
            if to_file or operator in (">", ">>", ">|", "&>", "&>>", "<>"):
                whole = redirect.descriptor == "1" or (redirect.descriptor == "" and operator != "<>")
                outputs.append((operator, target, whole))
                if redirect.descriptor not in _STANDARD:
                    self.state.keep(redirect.descriptor, target)
            elif operator == ">&" and (kept := self.state.settings.get(f"&{target}")) is not None:
                outputs.append((">>", kept, redirect.descriptor in ("", "1")))
        return stdin, outputs

    def _exec(self, stdin: Value | None, outputs: list[tuple[str, Arg, bool]]) -> Value:
        """`exec < file > file`: from now on commands read and write there."""
        if stdin is not None:
            self.state.keep("0", stdin)
        for operator, target, whole in outputs:
            self.emit(unknown() if target in self.judgement.sinks else EMPTY, [(operator, target, whole)])
            if whole:
                self.state.keep("1", target)
        return EMPTY

    def _document(self, redirect: syntax.Redirect) -> Value:
        if redirect.operator == "<<<":
            value = self.expander.one(redirect.target)
            return Value(value.text + "\n", value.taints, redirect.target)
        if redirect.body is None:
            return EMPTY
        if redirect.quoted:
            return self.expander.one(redirect.body)
        with self.inside(syntax.SourceMap(self.source_map, shift=0, text_map=redirect.origin)):
            value = self.expander.one(redirect.body)
        return Value(value.text, value.taints, syntax.Word([], redirect.body.start, redirect.body.end))

    def emit(self, out: Value, outputs: list[tuple[str, Arg, bool]]) -> Value:
        """Write what a command prints to its redirections; returns what is left for the next command."""
        for operator, target, whole in outputs:
            self.on_write(target, operator if whole else "2>", out)
            if (sink := self.judgement.sinks.get(target)) is not None:
                with self.inside(sink.source_map), self.subshell():
                    self.script(sink.script, out)
            elif whole:
                self._write_output(self.path(target), out, appends=">>" in operator)
            out = EMPTY if whole else out
        return out

    def _write_output(self, path: str, out: Value, *, appends: bool) -> None:
        self.spend(len(out.text))
        before = self.state.files.get(path) if appends else None
        if before is not None:
            out = either([joined([option, out]) for option in _options(before)]) or out
            self.spend(len(out.text) // 4)
            if len(out.text) > _MAX_APPENDED:
                out = unknown(out.taints)
        self.state.write(path, out)

    # What runs inside what

    def nested(self) -> Held:
        if self.nest >= MAX_NEST:
            raise Limit("commands nested too deeply")
        return Held(self, nest=self.nest + 1)

    @contextlib.contextmanager
    def subshell(self) -> Iterator[None]:
        """Changes inside are undone at the end."""
        mark = self.state.mark()
        with self.nested():
            yield
        self.state.undo(mark)

    def inside(self, source_map: syntax.SourceMap) -> Held:
        """Walk in another text."""
        return Held(self, source_map=source_map, place=self.place)

    def wrapped(self, name: str) -> Held:
        """Inside a program that runs another."""
        if len(self.under) >= MAX_WRAPPERS:
            raise Limit("too many programs that run one another")
        return Held(self, under=(*self.under, name))

    @contextlib.contextmanager
    def elsewhere(self) -> Iterator[None]:
        """On another machine or in a container: its own directory, its own users."""
        with Held(self, under=()), Held(self.state, cwd=self.state.cwd), paths.with_homes(NO_HOMES):
            yield

    # Variables

    def notice(self, name: str, value: Stored | None) -> None:
        """A variable was set that the shell itself reads: some of them hold what it runs."""
        if name not in _SHELL_READS or value is None:
            return
        if name == "BASH_ARGV0":
            self.state.name_program(value if isinstance(value, Value) else unknown())
            return
        for single in value.items.values() if isinstance(value, Array) else (value,):
            self._show_assignment(name, single)

    # Files

    @property
    def cwd(self) -> str:
        if self.state.directory is not None:
            return self.state.directory
        value = self.state.cwd
        assert isinstance(value, Either)
        return (self.exploration.pick(id(value), value) or EMPTY).text

    def path(self, path: str) -> str:
        """The normalised path under which a file is remembered."""
        return _normalised(str(path), self.cwd, self.judgement.project)

    def classes(self, path: str) -> frozenset[str]:
        return paths.classes(path, self.cwd, self.judgement.project)

    def work_tree(self) -> str:
        """The repository around the project, as far as the disk is known, else the project: whatever `cd` says since."""
        project = self.judgement.project
        return self.sources.root(project, project) if self.sources is not None and project else project

    def is_foreign(self, path: str) -> bool:
        """Whether it lies where everybody writes, and not in the work tree."""
        return "temp" in self.classes(path) and "temp" in paths.classes(self.path(path), ".", self.work_tree())

    def handed_over(self, script: str) -> re.Match[str] | None:
        """The first command of a script, if another program takes the shell's place there, which then reads no more."""
        return _RE.replaces_shell.match(script) if "exec" not in self.state.functions else None

    def known_file(self, path: str) -> Value | None:
        """What a file holds, if the command itself has made it."""
        if path == "/dev/null":
            return EMPTY
        if not self.state.files:
            return None
        found = self.written_file(path)
        if found is None and _RE.globs.search(path):
            pattern = self.path(path)
            matching = [content for name, content in self.state.files.items() if fnmatchcase(name, pattern)]
            found = either(matching) if matching else None
        return found if found is not None or not self.state.has_trees else self._in_tree(self.path(path))

    def written_file(self, path: str) -> Value | None:
        """What a file holds that the command wrote by name, not by writing a directory above it."""
        files = self.state.files
        if not files or ((name := path.rpartition("/")[2]) not in self.state.file_names and name not in _HERE):
            return None
        found = files.get(path)
        return found if found is not None else files.get(self.path(path))

    def _in_tree(self, path: str) -> Value | None:
        """What a file holds below a directory that is known only as a whole."""
        if _RE.built.search(path) or path.startswith("/dev/"):
            return None
        while "/" in path.rstrip("/"):
            path = path.rstrip("/").rpartition("/")[0] + "/"
            if (found := self.state.files.get(path)) is not None:
                return found
        return self.state.files.get("./") if path[:1] not in ("/", "~") else None

    def read_file(self, path: Arg) -> Value:
        known = self.known_file(path)
        if known is not None:
            return known
        self.judgement.add(on_read(path, self.cwd, self.judgement.project), ["<", path], self.span([path]))
        if path.startswith(("/dev/tcp/", "/dev/udp/")):
            return unknown(NETWORK)
        return unknown(self.file_taints(path))

    def file_taints(self, path: str) -> Taints:
        """What is private in a file that existed before the command."""
        if not self.classes(path).isdisjoint(_WORDS.secret_classes):
            return CREDENTIAL
        if path in _WORDS.endless_files:
            return ENDLESS
        if path.startswith(("/run/", "/var/run/")):  # ids of processes that others started
            return WIDE
        return PRIVATE if path in _WORDS.user_lists else NO_TAINTS

    def on_write(self, target: Arg, operator: str, content: Value) -> None:
        grows = ">>" in operator or UNKNOWN in target
        is_device = target.startswith("/dev/") and not target.startswith("/dev/shm/")
        if (Taint.ENDLESS in content.taints or (self._fills and grows and content.text)) and not is_device:
            self.report("disk.fill", [operator, target])
        empties = operator in (">", ">|", "&>") and not content.text.strip()
        matches = on_write(target, self.cwd, self.judgement.project, empties=empties)
        each = UNKNOWN in target and not _WORDS.many.isdisjoint(self.under)  # one of those that find or xargs has found
        if empties and not matches and (Taint.WIDE in target.taints or "*" in target or each):
            self.report("redirect.data", [operator, target])
        if matches:
            self.judgement.add(matches, [operator, target], self.span([target]))
        if target.startswith(("/dev/tcp/", "/dev/udp/")):
            if Taint.CREDENTIAL in content.taints:
                self.report("exfil.pipe", [operator, target])
            elif content.text == UNKNOWN:
                self.report("rce.reverse_shell", [operator, target])
            elif re.search(_EMPTIES_STORE, content.text):
                self.report("sql.destructive", [operator, target])

    # Findings

    def report(self, rule_id: str, argv: Sequence[str]) -> None:
        self.judgement.report(rule_id, argv, self.span(argv))

    def span(self, argv: Sequence[str]) -> Span:
        """The position of a command line in the judged text; the whole simple command when its words come from elsewhere."""
        words = [word for arg in argv if (word := getattr(arg, "word", None)) is not None]
        inside = [word for word in words if self.place[0] <= word.start and word.end <= self.place[1]]
        if inside and len(inside) == len(words):
            return self.source_map.span(min(word.start for word in inside), max(word.end for word in inside))
        return self.source_map.span(*self.place)


def _options(value: Value) -> list[Value]:
    """What it may be."""
    return [option for option in value.options if option is not None] if isinstance(value, Either) else [value]


def _line_key(call: Call, cwd: str) -> tuple[object, ...] | None:
    """All that rules see of a command line, unless that is much: loops and long scripts have the same one again and again."""
    for arg in call.args:
        if arg.taints or arg.glob:
            return None
    stdin = call.stdin
    if stdin is None:
        return call.name, call.program, tuple(call.args), cwd, paths.current_homes()
    if len(stdin.text) > _MAX_KEPT_INPUT:
        return None
    return call.name, call.program, tuple(call.args), cwd, paths.current_homes(), stdin.text, stdin.taints


def _mark_lists(argv: Sequence[Arg]) -> None:
    """`rm $(cat list)`: one unknown word of a substitution stands for any number of them."""
    for arg in argv:
        if arg == UNKNOWN and arg.word is not None and isinstance(arg.word.parts[0], syntax.Substitution):
            arg.taints |= WIDE


def _named(name: Arg, candidate: str) -> Arg:
    """A name without what made it uncertain."""
    made = name.like("[" if candidate == "[" else re.sub(f"[*?[{UNKNOWN}]", "_", candidate))
    made.glob = False
    return made


_WALKS: dict[type[syntax.Compound], Callable[..., Value]] = {
    syntax.Block: Walk._block,
    syntax.If: Walk._if,
    syntax.While: Walk._while,
    syntax.For: Walk._for,
    syntax.ArithmeticFor: Walk._arithmetic_for,
    syntax.Case: Walk._case,
    syntax.ArithmeticCommand: Walk._arithmetic,
    syntax.Condition: Walk._condition,
    syntax.Function: Walk._function,
    syntax.Coprocess: Walk._coprocess,
}
