"""What the names of a Python program may be worth: every constant that is bound to them anywhere, or unknown.

The order in which things happen is not followed. A name that is bound twice may be either; one that is appended to, bound by a
loop, a parameter or a `with`, or changed in a way that is not computed here, may also be something that is not known (None).
"""

import ast
import itertools
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .constants import Constants, fold

MAX_VALUES = 8
MAX_COMBINATIONS = 16
MAX_PASSED = 64
_LIST_CHANGES = frozenset("append extend insert".split())
_LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_CHANGED = frozenset("pop remove clear sort reverse update setdefault popitem __setitem__ __iadd__".split())

Dotted = Callable[[ast.AST], "str | None"]


class Values:
    """What each name may be worth, and a way to try all of it."""

    def __init__(self, dotted: Dotted) -> None:
        self.constants: Constants = {}
        """The names that have one value, and in a world the others too. A missing one is unknown."""
        self.functions: dict[str, list[str]] = {}
        """The functions and modules that a name may stand for, by their full names."""
        self._possible: dict[str, list[Any]] = {}
        self._several = False
        """Whether any name has more than one value."""
        self._dotted = dotted
        self._repeated: set[int] = set()
        self._local: dict[str, ast.FunctionDef] = {}
        self._used: dict[int, frozenset[str]] = {}

    def read(self, nodes: Sequence[ast.AST]) -> None:
        """Collect what is bound, in the order in which it is written; what is in loops and functions once more."""
        self._repeated = {id(inner) for node in nodes if isinstance(node, _LOOPS) for inner in ast.walk(node)}
        later = {id(inner) for node in nodes if isinstance(node, _FUNCTIONS) for inner in ast.walk(node)}
        ordered = sorted((node for node in nodes if hasattr(node, "lineno")), key=_START)
        binding = [node for node in ordered if isinstance(node, _BINDING)]
        self._local = _plain_functions(nodes)
        signatures = [function.args for function in self._local.values()]
        known = {id(arg) for given in signatures for arg in (*given.posonlyargs, *given.args)}
        for node in nodes:
            for name in _unknown_names(node) if id(node) not in known else ():
                self._add(name, None)
        for node in binding:
            self._bind(node)
        for node in binding:
            if id(node) in self._repeated or id(node) in later:
                self._bind(node)
        if any(self._is_namespace_change(node) for node in nodes):
            for name in list(self._possible):
                self._add(name, None)

    def _is_namespace_change(self, node: ast.AST) -> bool:
        """`globals()["x"] = y`, `exec("x = y")`: any name may get another value."""
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            return isinstance(node.value, ast.Call) and self._dotted(node.value.func) in ("globals", "locals", "vars")
        if not isinstance(node, ast.Call) or self._dotted(node.func) not in ("exec", "builtins.exec"):
            return False
        text = fold(node.args[0], self.constants) if node.args else None
        return not isinstance(text, str) or "=" in text

    def combinations(self, node: ast.AST) -> Iterator[None]:
        """Go through what the names in an expression may be: for each combination, `constants` says which value they have."""
        if not self._several:
            yield
            return
        if (used := self._used.get(id(node))) is None:
            used = frozenset(inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name))
            self._used[id(node)] = used
        names = [name for name in sorted(used) if len(self._possible.get(name, ())) > 1]
        count = 1
        for name in names:
            count *= len(self._possible[name])
        if count > (MAX_PASSED if len(names) == 1 else MAX_COMBINATIONS):
            yield  # none of them has a value in `constants`
            return
        for chosen in itertools.product(*(self._possible[name] for name in names)):
            for name, value in zip(names, chosen, strict=True):
                self.constants[name] = value
            yield
        for name in names:
            self.constants.pop(name, None)

    def _bind(self, node: ast.AST) -> None:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self._assign(target, node.value)
        elif isinstance(node, ast.NamedExpr) or (isinstance(node, ast.AnnAssign) and node.value is not None):
            self._assign(node.target, node.value)  # type: ignore[arg-type]
        elif isinstance(node, ast.AugAssign):
            self._augment(node)
        elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
            self._iterate(node.target, node.iter)
        elif isinstance(node, ast.Call):
            self._pass(node)
            self._mutate(node)

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            for constant in self._all(value):
                self._add(target.id, constant)
            if dotted := self._dotted(value):
                known = self.functions.setdefault(target.id, [])
                if dotted not in known:
                    known.append(dotted)
        elif isinstance(target, ast.Tuple | ast.List):
            items = value.elts if isinstance(value, ast.Tuple | ast.List) else []
            if len(items) == len(target.elts) and not any(isinstance(one, ast.Starred) for one in target.elts):
                for one, item in zip(target.elts, items, strict=True):
                    self._assign(one, item)
            else:
                self._forget(target)
        elif isinstance(target, ast.Subscript | ast.Starred):
            self._forget(target)

    def _forget(self, target: ast.AST) -> None:
        """Every name in it may be anything."""
        for inner in ast.walk(target):
            if isinstance(inner, ast.Name):
                self._add(inner.id, None)

    def _augment(self, node: ast.AugAssign) -> None:
        if not isinstance(node.target, ast.Name):
            self._forget(node.target)
            return
        name = node.target.id
        whole = ast.BinOp(ast.Name(name, ast.Load()), node.op, node.value)
        for constant in self._all(whole):
            self._add(name, constant)
        if id(node) in self._repeated or name not in self._possible:
            self._add(name, None)

    def _iterate(self, target: ast.expr, iterable: ast.expr) -> None:
        for items in self._all(iterable):
            if not isinstance(items, list | tuple | dict) or len(items) > MAX_VALUES:
                self._forget(target)
                continue
            for item in items:
                if isinstance(target, ast.Name):
                    self._add(target.id, item)
                elif isinstance(target, ast.Tuple | ast.List) and isinstance(item, list):
                    for one, part in itertools.zip_longest(target.elts, item):
                        if isinstance(one, ast.Name):
                            self._add(one.id, part)
                else:
                    self._forget(target)

    def _pass(self, node: ast.Call) -> None:
        """A call of one of the program's own functions binds its parameters."""
        function = self._local.get(node.func.id) if isinstance(node.func, ast.Name) else None
        if function is None:
            return
        names = [arg.arg for arg in (*function.args.posonlyargs, *function.args.args)]
        given = dict(zip(reversed(names), reversed(function.args.defaults), strict=False))
        given.update(zip(names, node.args, strict=False))
        given.update((keyword.arg, keyword.value) for keyword in node.keywords if keyword.arg in names)
        spread = any(isinstance(arg, ast.Starred) for arg in node.args) or any(key.arg is None for key in node.keywords)
        for name in names:
            for value in self._all(given[name]) if name in given and not spread else [None]:
                self._add(name, value, most=MAX_PASSED)

    def _mutate(self, node: ast.Call) -> None:
        """`args.append("-rf")`: the list may also be the longer one."""
        if not isinstance(node.func, ast.Attribute) or not isinstance(node.func.value, ast.Name):
            return
        name, method = node.func.value.id, node.func.attr
        if method not in _LIST_CHANGES and method not in _CHANGED:
            return
        lists = [value for value in self._possible.get(name, ()) if isinstance(value, list)]
        if any(isinstance(value, dict) for value in self._possible.get(name, ())):
            self._add(name, None)
        if not lists:
            return
        for _ in self.combinations(node):
            given = [fold(arg, self.constants) for arg in node.args]
            for items in lists:
                self._add(name, _changed(items, method, given, again=id(node) in self._repeated))

    def _all(self, node: ast.expr) -> list[Any]:
        """What an expression may be worth."""
        if isinstance(node, ast.IfExp):
            return [*self._all(node.body), *self._all(node.orelse)]
        if isinstance(node, ast.BoolOp):
            return [value for part in node.values for value in self._all(part)]
        if isinstance(node, ast.NamedExpr):
            return self._all(node.value)
        return [fold(node, self.constants) for _ in self.combinations(node)]

    def _add(self, name: str, value: Any, *, most: int = MAX_VALUES) -> None:
        possible = self._possible.setdefault(name, [])
        if any(type(value) is type(one) and value == one for one in possible):
            return
        if len(possible) >= most:
            value = None
            if None in possible:
                return
        possible.append(value)
        self._several = self._several or len(possible) > 1
        self.constants.pop(name, None)
        if len(possible) == 1 and value is not None:
            self.constants[name] = value


_START = operator.attrgetter("lineno", "col_offset")
_BINDING = (
    ast.Assign, ast.NamedExpr, ast.AnnAssign, ast.AugAssign, ast.For, ast.AsyncFor, ast.comprehension, ast.Call,
)  # fmt: skip


def _plain_functions(nodes: Sequence[ast.AST]) -> dict[str, ast.FunctionDef]:
    """The program's own functions of which every call is seen: defined once, not decorated, never passed on."""
    found: dict[str, ast.FunctionDef] = {}
    calls = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    other = {node.id for node in nodes if isinstance(node, ast.Name) and id(node) not in calls}
    methods = {id(one) for node in nodes if isinstance(node, ast.ClassDef) for one in node.body}
    for node in nodes:
        if isinstance(node, ast.FunctionDef):
            if node.name in found or node.decorator_list or id(node) in methods:
                other.add(node.name)
            found[node.name] = node
    called = {node.func.id for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    return {name: function for name, function in found.items() if name in called and name not in other}


def _unknown_names(node: ast.AST) -> Iterator[str]:
    """Names that something binds to a value that is not in the program's text."""
    if isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
        yield node.name
    elif isinstance(node, ast.withitem) and node.optional_vars is not None:
        yield from (inner.id for inner in ast.walk(node.optional_vars) if isinstance(inner, ast.Name))
    elif isinstance(node, ast.Delete):
        for target in node.targets:
            yield from (inner.id for inner in ast.walk(target) if isinstance(inner, ast.Name))


def _changed(items: list[Any], method: str, given: list[Any], *, again: bool) -> list[Any] | None:
    """The list after one of its methods; None when that is not computed. `again`: it may happen several times."""
    if method == "append" and len(given) == 1:
        longer = [*items, given[0]]
    elif method == "extend" and len(given) == 1 and isinstance(given[0], list):
        longer = [*items, *given[0]]
    elif method == "insert" and len(given) == 2 and isinstance(given[0], int):
        longer = [*items[: given[0]], given[1], *items[given[0] :]]
    else:
        return None
    return [*longer, None] if again else longer
