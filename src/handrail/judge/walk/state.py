"""What a shell remembers while it runs, with a journal that keeps certain changes apart from possible ones.

A subshell is a stretch of the journal that is undone; a branch is a stretch after which each change is one possibility.
Nothing is ever copied, so a thousand subshells cost no more than what they change.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import zip_longest
from typing import Any, NamedTuple, TypeVar

from ..grammar.syntax import Command, SourceMap
from ..values.taints import Taints, taints_of
from ..values.word_values import EMPTY, UNKNOWN, Array, Either, Stored, Value, either, unknown

T = TypeVar("T")
MAX_PATHS = 12
_MAX_MERGED = 64


class Held:
    """Gives attributes of an object other values for the time of a `with`."""

    __slots__ = ("_before", "_of", "_values")

    def __init__(self, of: object, **values: object) -> None:
        self._of = of
        self._values = values

    def __enter__(self) -> None:
        self._before = {name: getattr(self._of, name) for name in self._values}
        for name, value in self._values.items():
            setattr(self._of, name, value)

    def __exit__(self, *_: object) -> None:
        for name, value in self._before.items():
            setattr(self._of, name, value)


class Defined(NamedTuple):
    """A function: its body, and the source map of its text."""

    body: Command
    source_map: SourceMap
    level: int
    """In which shell it was defined: one that is started later has it only if it is exported."""


Changes = dict[tuple[int, str], Any]
"""What a stretch of the journal left behind, by table and name; None where something was removed."""

_VARIABLES, _FUNCTIONS, _ALIASES, _FILES, _SETTINGS = range(5)

_BASH, _PATH = "/bin/bash", f"{UNKNOWN}/bin:/usr/bin"
_AT_FIRST = {"HOME": "~", "IFS": " \t\n", "BASH": _BASH, "SHELL": _BASH, "HISTFILE": "~/.bash_history", "PATH": _PATH}
_VARIABLES_AT_FIRST: dict[str, Stored] = {name: Value(text) for name, text in _AT_FIRST.items()}


class State:
    """Variables, functions, aliases, files made by the command itself, working directory and arguments."""

    def __init__(self, cwd: str, variables: Mapping[str, str | None] | None = None) -> None:
        self.variables = _VARIABLES_AT_FIRST.copy()
        self.first_path = self.variables["PATH"]
        self.directory: str | None = cwd
        """The working directory as a text; None when it is one of several."""
        self.given = frozenset(variables or ())
        """The variables that the shell had before the command."""
        for name, text in (variables or {}).items():
            if name not in self.variables:
                self.variables[name] = unknown() if text is None else Value(text)
        self.functions: dict[str, tuple[Defined, ...]] = {}
        self.aliases: dict[str, Value] = {}
        self.files: dict[str, Value] = {}
        """What files hold that the command itself has written, by normalised path; `dir/` stands for all below it."""
        self.has_trees = False
        self.file_names: set[str] = set()
        """The last parts of their paths: most lookups are decided by that alone."""
        self.option_names: set[str] = set()
        """Those that a program would take for options."""
        self.settings: dict[str, Any] = {"cwd": Value(cwd), "arguments": None, "program": None}
        self._tables: tuple[Any, ...] = (self.variables, self.functions, self.aliases, self.files, self.settings)
        self._journal: list[tuple[int, str, Any]] = []

    @property
    def arguments(self) -> tuple[Value, ...] | None:
        """The positional parameters; None when nothing is known about them."""
        return self.settings["arguments"]  # type: ignore[no-any-return]

    @arguments.setter
    def arguments(self, values: tuple[Value, ...] | None) -> None:
        self._set(_SETTINGS, "arguments", values)

    def name_program(self, name: Value | None) -> None:
        """What `$0` is."""
        self._set(_SETTINGS, "program", name)

    @property
    def cwd(self) -> Value:
        return self.settings["cwd"]  # type: ignore[no-any-return]

    @cwd.setter
    def cwd(self, path: Value) -> None:
        self._set(_SETTINGS, "cwd", path)

    def assign(self, name: str, value: Stored | None) -> None:
        self._set(_VARIABLES, name, value)

    def define(self, name: str, function: Defined | None) -> None:
        self._set(_FUNCTIONS, name, None if function is None else (function,))

    def alias(self, name: str, text: Value | None) -> None:
        self._set(_ALIASES, name, text)

    def write(self, path: str, content: Value) -> None:
        self.has_trees |= path.endswith("/")
        self.file_names.add(name := path.rpartition("/")[2])
        if name[:1] == "-":
            self.option_names.add(name)
        self._set(_FILES, path, content)

    def keep(self, descriptor: str, target: Any) -> None:
        """Where a descriptor leads from now on: what is read from it, or the path that is written to."""
        self._set(_SETTINGS, f"&{descriptor}", target)

    def mark(self) -> int:
        """The current position in the journal."""
        return len(self._journal)

    def undo(self, mark: int, *, only_variables: bool = False) -> Changes:
        """Go back to a mark, as at the end of a subshell; files stay written. Returns what was undone, or the variables."""
        if len(self._journal) == mark:
            return {}
        kept = [entry for entry in self._journal[mark:] if entry[0] == _FILES]
        self._journal[mark:] = [entry for entry in self._journal[mark:] if entry[0] != _FILES]
        changes = self.take_back(mark)
        self._journal += kept
        return {key: value for key, value in changes.items() if key[0] == _VARIABLES} if only_variables else changes

    def perhaps(self, mark: int) -> None:
        """What happened since a mark may not have happened."""
        if len(self._journal) > mark:
            self.one_of([self.take_back(mark), {}])

    def one_of(self, branches: Iterable[Changes]) -> None:
        """Exactly one of these happened."""
        branches = list(branches)
        for key in {key: None for changes in branches for key in changes}:
            number, name = key
            old = self._tables[number].get(name)
            results = [changes.get(key, old) if key in changes else old for changes in branches]
            self._set(number, name, _merged(number, results))

    def take_back(self, mark: int) -> Changes:
        """Everything since a mark, files too, undone."""
        changes: Changes = {}
        while len(self._journal) > mark:
            number, name, old = self._journal.pop()
            changes.setdefault((number, name), self._tables[number].get(name))
            self._put(number, name, old)
        return changes

    def changed(self, mark: int) -> list[tuple[int, str]]:
        """What is not what it was at a mark, by table and name."""
        before: dict[tuple[int, str], Any] = {}
        for number, name, old in self._journal[mark:]:
            before.setdefault((number, name), old)
        return [key for key, old in before.items() if not _same(old, self._tables[key[0]].get(key[1]))]

    def forget(self, keys: Iterable[tuple[int, str]]) -> None:
        """These may be anything now."""
        for number, name in keys:
            if number in (_VARIABLES, _FILES):
                self._set(number, name, unknown(_taints([self._tables[number].get(name)])))
            elif number == _SETTINGS:
                self._set(number, name, unknown() if name in ("cwd", "&0") else None)

    def _set(self, number: int, name: str, value: Any) -> None:
        self._journal.append((number, name, self._tables[number].get(name)))
        self._put(number, name, value)

    def _put(self, number: int, name: str, value: Any) -> None:
        if name == "cwd" and number == _SETTINGS:
            self.directory = None if isinstance(value, Either) else value.text
        if value is None and number != _SETTINGS:
            self._tables[number].pop(name, None)
        else:
            self._tables[number][name] = value


def _merged(number: int, results: list[Any]) -> Any:
    """What holds when one of these does."""
    first = results[0]
    if all(result is first for result in results):
        return first
    if number == _FUNCTIONS:
        return tuple({id(one): one for result in results if result for one in result}.values())
    if number == _ALIASES:
        return either([result for result in results if result is not None])
    if all(result is None or isinstance(result, Value) for result in results):
        if number == _FILES:
            results = [result for result in results if result is not None] or results
        return either(results)
    if number == _VARIABLES:
        return _merged_arrays(results)
    is_known = all(isinstance(result, tuple) for result in results)
    return tuple(either(values) for values in zip_longest(*results)) if is_known else None


def _merged_arrays(results: list[Any]) -> Stored:
    """An array that is one of these: each of its elements is one of theirs, or not there."""
    arrays = [
        result if isinstance(result, Array) else Array({} if result is None else {"0": result}) for result in results
    ]
    if any(len(array.items) > _MAX_MERGED for array in arrays):
        return unknown(_taints(results))
    keys = {key: None for array in arrays for key in array.items}
    items = {key: either(array.items.get(key) for array in arrays) or EMPTY for key in keys}
    return Array(items, associative=any(array.associative for array in arrays))


def _same(one: Any, other: Any) -> bool:
    """Whether two entries of a table are worth the same."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, Either):
        return len(one.options) == len(other.options) and all(map(_same, one.options, other.options))
    if isinstance(one, Value):
        return bool(one.text == other.text and one.taints == other.taints)
    if isinstance(one, Array):
        return list(one.items) == list(other.items) and all(map(_same, one.items.values(), other.items.values()))
    if isinstance(one, tuple) and one and isinstance(one[0], Value):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)


def _taints(results: list[Any]) -> Taints:
    values = [result for result in results if isinstance(result, Value)]
    values += [item for result in results if isinstance(result, Array) for item in result.items.values()]
    return taints_of(values)


class PathExploration:
    """Which option was taken where, while one command is walked again and again."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._taken: dict[object, int] = {}
        self._kept: dict[object, Either] = {}
        """What was picked from: kept alive, so that no other value gets its identity."""
        self._fresh: list[tuple[object, int]] | None = None
        """What was picked for the first time in the command at hand, and out of how many."""
        self._give_up = False

    def pick(self, key: object, value: Either) -> Value | None:
        if self._give_up:
            return unknown(value.taints)
        number = self._taken.get(key)
        if number is None:
            number = self._taken[key] = 0
            self._kept[key] = value
            if self._fresh is None:
                self._fresh = []
            self._fresh.append((key, len(value.options)))
        return value.options[number] if number < len(value.options) else unknown(value.taints)

    def each(self, function: Callable[..., T], *arguments: Any) -> list[T]:
        """What the function returns on each path. What it changes is one of several possibilities afterwards."""
        outer = self._fresh
        self._fresh = None
        mark = self._state.mark()
        first = function(*arguments)
        fresh = self._fresh
        results = self._others(partial(function, *arguments), first, fresh, mark) if fresh else [first]
        self._fresh = outer
        return results

    def _others(self, work: Callable[[], T], first: T, fresh: list[tuple[object, int]], mark: int) -> list[T]:
        results, branches = [first], [self._state.take_back(mark)]
        waiting: list[dict[object, int]] = _neighbours({}, fresh)
        self._forget(fresh)
        while waiting:
            if len(results) >= MAX_PATHS:  # too many: what is not decided counts as unknown
                with Held(self, _give_up=True):
                    results.append(work())
                branches.append(self._state.take_back(mark))
                break
            taken = waiting.pop()
            self._taken.update(taken)
            self._fresh = None
            results.append(work())
            branches.append(self._state.take_back(mark))
            fresh = self._fresh or []
            waiting += _neighbours(taken, fresh)
            self._forget([*fresh, *((key, 0) for key in taken)])
        self._fresh = None
        self._state.one_of(branches)
        return results

    def _forget(self, picked: list[tuple[object, int]]) -> None:
        for key, _ in picked:
            self._taken.pop(key, None)
            self._kept.pop(key, None)


def _neighbours(taken: dict[object, int], fresh: list[tuple[object, int]]) -> list[dict[object, int]]:
    """The paths that differ in one of the fresh picks; those after it are open again."""
    found: list[dict[object, int]] = []
    before = dict(taken)
    for key, count in fresh:
        found += [{**before, key: number} for number in range(1, count)]
        before[key] = 0
    return found
