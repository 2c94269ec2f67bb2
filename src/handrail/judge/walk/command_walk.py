"""Judge one command line: find out what its name stands for, follow what it runs in turn, and show it to the rules."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence

from ..grammar.syntax import Assignment, Simple, Word
from ..programs.data_programs import DATA_PROGRAMS
from ..programs.interpreter_table import COMMAND_VARIABLES, INJECTING_VARIABLES
from ..rules import Command as Line
from ..rules import on_assign
from ..values.word_values import (
    EMPTY,
    UNKNOWN,
    Arg,
    Array,
    Either,
    OtherName,
    Stored,
    Taint,
    Value,
    either,
    joined,
    taints_of,
    unknown,
)
from . import output_provenance, shell_escapes, text_emulation, unlisted_programs
from .builtins import BUILTINS
from .compound_walk import CompoundWalk
from .files_made import files_made
from .judgement import Judgement, Limit
from .operators import shell_quoted
from .output_options import output_files
from .program_handlers import Call, Handler, handler_of
from .program_names import possible_names
from .state import Defined, State

MAX_WRAPPERS = 24
_PROGRAM_FOLDERS = ("/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "~/bin", "~/.local/bin")
_PROMPTS = frozenset(("PS0", "PS1", "PS2", "PS4"))
_SELF_CONTAINED = frozenset(("eval", "source", ".", "read", "exec", "command", "builtin"))


class Running(CompoundWalk):
    """Runs command lines, without running them."""

    under: tuple[str, ...] = ()
    """The programs that this one was started through, outermost first."""
    locals: dict[str, Stored | None] | None = None
    """What the function at hand has made its own, with what it was outside; None outside of functions."""
    _calls: tuple[int, ...] = ()
    """The functions at work, by the identity of their bodies: another shell may have one of the same name."""

    def __init__(self, judgement: Judgement, state: State) -> None:
        super().__init__(judgement, state)
        self._called: set[Defined] = set()

    def simple(self, node: Simple, stdin: Value | None) -> Value:
        self.place = (node.start, node.end)
        if not node.words:
            return self._only_assignments(node)
        declared: list[Assignment] = []
        words: list[Word] = node.words  # type: ignore[assignment]
        if node.declares:
            declared = [word for word in node.words if isinstance(word, Assignment)]
            words = [word for word in node.words if isinstance(word, Word)]
        argv = self.expander.args(words)
        stdin, outputs = self.redirects(node.redirects, stdin) if node.redirects else (stdin, [])
        if not argv:
            for assignment in node.assignments:
                self.make_assignment(assignment)
            return self.emit(EMPTY, outputs)
        if node.assignments:
            out = self._with_assignments(node.assignments, argv, stdin)
        else:
            out = self.run(argv, stdin, declared=declared)
        return self.emit(out, outputs) if outputs else out

    def _only_assignments(self, node: Simple) -> Value:
        for assignment in node.assignments:
            self.make_assignment(assignment)
            value = self.state.variables.get(assignment.name)
            if assignment.name in self.exported:
                self.on_assign(assignment.name, value)
            else:
                self._show_assignment(assignment.name, value)
        reads, outputs = self.redirects(node.redirects, None)
        if outputs:
            return self.emit(reads or EMPTY, outputs)
        return reads if reads is not None else EMPTY  # $(<file)

    def _with_assignments(self, assignments: Sequence[Assignment], argv: list[Arg], stdin: Value | None) -> Value:
        """`A=1 command`: the variables hold while it runs."""
        before = {node.name: self.state.variables.get(node.name) for node in assignments}
        added = [node.name for node in assignments if node.name not in self.exported]
        for node in assignments:
            self.make_assignment(node)
            self.on_assign(node.name, self.state.variables.get(node.name))
        self.exported.update(added)
        try:
            return self.run(argv, stdin)
        finally:
            self.exported.difference_update(added)
            for name, value in before.items():
                self.state.assign(name, value)

    def on_assign(self, name: str, value: Stored | None) -> None:
        """A variable that programs will see: some of them make programs run or load something."""
        self._show_assignment(name, value)
        if isinstance(value, Array) or value is None or not value.text:
            return
        if name in COMMAND_VARIABLES:
            if value.known:
                self.run_text(value, None, name)
        elif name in INJECTING_VARIABLES and (not value.known or re.search(INJECTING_VARIABLES[name], value.text)):
            self.report("env.inject", [name, value.text])

    def _show_assignment(self, name: str, value: Stored | None) -> None:
        """A variable that the shell itself looks at."""
        if not isinstance(value, Value):
            return
        if name == "PATH":
            self._check_search_path(value)
        elif name in _PROMPTS and value.known:
            self.prompt(value)
        elif name == "PROMPT_COMMAND":
            self.run_text(value, None, name)
        if matches := on_assign(name, value.text):
            self.judgement.add(matches, [name, value.text], self.span([]))

    def _check_search_path(self, value: Value) -> None:
        """Programs that are looked for in a place where anyone can put them."""
        in_front, rest, _ = value.text.partition(UNKNOWN)
        for directory in in_front.split(":")[: -1 if rest else None]:
            if directory in ("", ".") or "temp" in self.classes(directory):
                self.report("env.path", ["PATH", value.text])
                return

    # Command lines

    def run(
        self,
        argv: Sequence[Arg],
        stdin: Value | None,
        *,
        declared: Sequence[Assignment] = (),
        functions: bool = True,
        builtins: bool = True,
    ) -> Value:
        """Judge a command line; what it would print. `functions`: its name may be a function or an alias."""
        self.judgement.step()
        if not argv:
            return EMPTY
        name = argv[0]
        if UNKNOWN in name or name.glob or not name:
            return self._unknown_name(argv, stdin, declared)
        if functions and (self.state.functions or self.state.aliases):
            found = self._alias_or_function(argv, stdin)
            if found is not None:
                return found
        base = name.rsplit("/", 1)[-1] if "/" in name else str(name)
        if base[-4:] == ".exe":
            base = base[:-4]
        if self.judgement.recording:
            self.judgement.lines.append((argv, self.frame, self.place, self.nest + len(self.under)))
        call = Call(base, argv[1:], stdin, name, declared)
        out: Value | None = None
        if builtins and (handler := BUILTINS.get(base)):
            out = handler(self, call)
            if out is not None and base in _SELF_CONTAINED:
                return out
        if self.state.files and (made := self._made_program(name, call)) is not None:
            return made
        outer: Handler | None = handler_of(base)
        if outer is None and len(argv) > 1 and base not in DATA_PROGRAMS:
            unlisted_programs.follow(self, call)
        elif outer is not None and out is None:
            out = outer(self, call)
        self._show_to_rules(call)
        self._note_effects(call, followed=outer is not None)
        return out if out is not None else self._output(call)

    def _note_effects(self, call: Call, *, followed: bool) -> None:
        """What it does beside printing: shells that it opens, files that it writes."""
        if self.under and shell_escapes.opens_root_shell(self.under, call, followed=followed):
            self.report("privilege.root_shell", call.argv)
        for target in output_files(call):
            self.on_write(target, "-o", unknown())
        files_made(self, call)

    def _show_to_rules(self, call: Call) -> None:
        line = Line(
            call.name,
            call.args,
            cwd=self.cwd,
            project=self.judgement.project,
            stdin=call.stdin,
            files=self.written_file,
            argv0=str(call.program),
        )
        matches = self.judgement.book.findings(line)
        if matches:
            argv = [call.program, *call.args]
            self.judgement.add(matches, argv, self.span(argv))

    def _output(self, call: Call) -> Value:
        out = text_emulation.output(call.name, call.args, call.stdin, self.known_file)
        if out is None:
            out = output_provenance.unknown_output(self, call)
        if call.name in ("tee", "sponge"):
            for arg in call.args:
                if arg[:1] != "-":
                    self.emit(out, [(">", arg, True)])
        return out

    def _unknown_name(self, argv: Sequence[Arg], stdin: Value | None, declared: Sequence[Assignment]) -> Value:
        """A name that is not known: every program that it may be is judged; when that cannot be said, a person is asked."""
        name = argv[0]
        names = possible_names(name, self.judgement.book)
        if names is None:
            self.report("dynamic.command", argv)
            self.judgement.lines.append((argv, self.frame, self.place, self.nest + len(self.under)))
            if name == UNKNOWN and not name.quoted and len(argv) > 1:
                self.run(argv[1:], stdin, declared=declared)  # it may be empty
            return unknown(name.taints)
        outs = [self.run([_named(name, candidate), *argv[1:]], stdin, declared=declared) for candidate in names]
        return either(outs) or EMPTY

    def _alias_or_function(self, argv: Sequence[Arg], stdin: Value | None) -> Value | None:
        name = str(argv[0])
        alias = self.state.aliases.get(name)
        if alias is not None:  # only an interactive shell expands it: the name itself is judged too
            self.state.alias(name, None)
            text = alias.text + "".join(" " + shell_quoted(arg) for arg in argv[1:])
            self.run_text(Value(text, alias.taints | taints_of(argv)), stdin, "alias", same_shell=True)
            self.state.alias(name, alias)
        found = self.state.functions.get(name)
        if not found:
            return None
        outs = [self._call(name, function, argv[1:], stdin) for function in found]
        # A shell that was started since has the function only if it was exported.
        return joined(outs) if all(function.level == self.level for function in found) else None

    def _call(self, name: str, function: Defined, args: Sequence[Arg] | None, stdin: Value | None) -> Value:
        self._called.add(function)
        if id(function.body) in self._calls:
            if self.concurrent:
                self.report("proc.fork_bomb", [name])
            return unknown()
        saved = self.state.arguments
        self.state.arguments = None if args is None else tuple(arg.value() for arg in args)
        calls, self._calls = self._calls, (*self._calls, id(function.body))
        outer, self.locals = self.locals, {}
        try:
            with self.inside(function.frame), self.nested():
                return self.command(function.body, stdin)
        finally:
            for variable, value in self.locals.items():
                self.state.assign(variable, value)
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
            self.run_text(Value(f"{text.text} {UNKNOWN}", text.taints, text.word), None, "alias")

    def _made_program(self, name: Arg, call: Call) -> Value | None:
        """A program that the command itself has made: it is what was written into it."""
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
        """Where a program is found, if a directory of PATH got it from this command."""
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
            if Taint.NETWORK in content.taints:
                self.report("rce.download_to_shell", [path])
            return unknown(content.taints)
        first, _, _ = content.text.partition("\n")
        interpreter = [Arg(part) for part in first[2:].split()] if first.startswith("#!") else [Arg("sh")]
        self.judgement.scripts += 1
        self.state.write(script := f"/dev/fd/script{self.judgement.scripts}", content)
        with self.wrapped(path):
            return self.run([*interpreter, Arg(script), *args], stdin, functions=False)

    @contextlib.contextmanager
    def wrapped(self, name: str) -> Iterator[None]:
        """Inside a program that runs another."""
        outer = self.under
        if len(outer) >= MAX_WRAPPERS:
            raise Limit("too many programs that run one another")
        self.under = (*outer, name)
        try:
            yield
        finally:
            self.under = outer

    @contextlib.contextmanager
    def elsewhere(self) -> Iterator[None]:
        """On another machine or in a container: its own directory, its own users."""
        under, self.under = self.under, ()
        cwd = self.state.cwd
        try:
            yield
        finally:
            self.under = under
            self.state.cwd = cwd


def _named(name: Arg, candidate: str) -> Arg:
    """A name without what made it uncertain."""
    made = name.like("[" if candidate == "[" else re.sub(f"[*?[{UNKNOWN}]", "_", candidate))
    made.glob = False
    return made
