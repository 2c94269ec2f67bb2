"""Read Python by `ast`: which calls it makes, with arguments folded to constants where that is possible.

This file is longer than the others on purpose. All of it is one reader that goes through one tree with one set of names.
"""

import ast
import builtins
import re
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import Any

from ..values.data_files import Patterns, Words
from ..values.paths import classes
from ..values.word_values import UNKNOWN
from .constants import ARGUMENTS, fold
from .host import MAX_DEPTH, Host
from .python_values import Values

_WORDS = Words(__file__)
_RE = Patterns(__file__)
_MAX_NODES = 60_000
_MAX_TEXT = 80_000
_RUNS = _WORDS.shell | _WORDS.subprocess
_DELETES = _WORDS.tree | _WORDS.remove
_BY_LAST = {name.rpartition(".")[2]: name for name in (_RUNS | _DELETES) - _WORDS.common_names}
_LEAVES = (ast.Break, ast.Return, ast.Raise, ast.Yield, ast.YieldFrom, ast.Await)
_C_LIBRARY = {
    "reboot": "power.off", "unlink": "code.delete", "remove": "code.delete", "rmdir": "code.delete",
    "kill": "proc.kill_force", "umount2": "disk.unmount", "PyRun_SimpleString": "code.exec_computed",
    "dlopen": "env.inject", "syscall": "code.exec_computed",
}  # fmt: skip


def judge(host: Host, text: str) -> None:
    if len(text) > _MAX_TEXT:
        host.find("limit.exceeded")
        return
    try:
        tree = ast.parse(text.strip("\n") + "\n" if not text.startswith((" ", "\t")) else text.strip() + "\n")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        if UNKNOWN in text or _RE.dangerous_words.search(text):
            host.find("code.unreadable")
        return
    nodes = list(ast.walk(tree))
    if len(nodes) > _MAX_NODES or host.depth > MAX_DEPTH:
        host.find("limit.exceeded")
        return
    reader = _Reader(host, text, nodes)
    if host.arguments is not None:
        reader.constants[ARGUMENTS] = list(host.arguments)
    reader.read()


class _Reader:
    def __init__(self, host: Host, text: str, nodes: list[ast.AST]) -> None:
        self.host = host
        host.downloads |= _RE.downloads.search(text) is not None
        self.text = text
        self.nodes = nodes
        self.names: dict[str, str] = {}
        """The modules and functions that were imported, by the name that they have here."""
        self.values = Values(self._dotted)
        self.constants = self.values.constants
        self.escaped: set[str] = set()
        """Functions that are kept or passed somewhere: whatever is called without a known name may be one of them."""
        self.attributes: set[str] = set()
        """Attributes that something is assigned to: they may be one of these functions too."""
        self.typed: list[ast.expr] = []
        """What is written to a program's input."""
        self.modules: set[str] = set()
        self.is_private = _RE.private.search(text) is not None or any(
            isinstance(node, ast.Constant) and isinstance(node.value, str) and "credential" in classes(node.value)
            for node in nodes
        )
        """Whether it names keys, passwords or the environment."""
        self.everything_of: list[str] = []
        """Modules from which all names were imported."""

    def read(self) -> None:
        for node in self.nodes:
            self._define(node)
        self.values.read(self.nodes)
        self._find_escapes()
        for node in self.nodes:
            if isinstance(node, ast.While | ast.For | ast.ListComp | ast.GeneratorExp) and self._forks(node):
                self.host.find("proc.fork_bomb")
            if isinstance(node, ast.While) and self._fills(node):
                self.host.find("disk.fill")
        for call in sorted((node for node in self.nodes if isinstance(node, ast.Call)), key=_end):
            for _ in self.values.combinations(call):
                self._call(call)
        if self.host.shown:
            for name, value in _settings(self.nodes):
                text = fold(value, self.constants)
                if isinstance(key := fold(name, self.constants), str) and _RE.variable.fullmatch(key):
                    self.host.export(key, text if isinstance(text, str) else UNKNOWN)

    def _define(self, node: ast.AST) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                self.names[alias.asname or top] = alias.name if alias.asname else top
                self.modules.add(top)
        elif isinstance(node, ast.ImportFrom):
            self.modules.add((node.module or "").partition(".")[0])
            for alias in node.names:
                if alias.name == "*":
                    self.everything_of.append(node.module or "")
                self.names[alias.asname or alias.name] = f"{node.module or ''}.{alias.name}"
                if (node.module, alias.name) == ("sys", "argv") and self.host.arguments is not None:
                    self.constants[alias.asname or "argv"] = list(self.host.arguments)
        elif isinstance(node, ast.Assign) and isinstance(target := node.targets[0], ast.Attribute):
            if self._dotted(target.value) in ("builtins", "__builtins__"):  # every name there is known everywhere
                self.names[target.attr] = self._dotted(node.value) or target.attr
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("communicate", "write", "writelines", "sendline")
        ) or (isinstance(node, ast.Call) and any(keyword.arg == "file" for keyword in node.keywords)):
            self.typed += node.args

    def _find_escapes(self) -> None:
        """Functions that run or delete something and are neither called where they are named nor simply renamed."""
        plain: set[int] = set()
        for node in self.nodes:
            if isinstance(node, ast.Call):
                plain.add(id(node.func))
            elif isinstance(node, ast.Attribute) or (
                isinstance(node, ast.Assign)
                and all(isinstance(target, ast.Name) and target.id[:2] != "__" for target in node.targets)
            ):
                plain.add(id(node.value))
        for node in self.nodes:
            if isinstance(node, ast.Attribute | ast.Name) and id(node) not in plain:
                name = _usual_name(self._dotted(node) or "")
                if name in _RUNS or name in _DELETES or name in ("exec", "eval") or _RE.exec.fullmatch(name):
                    self.escaped.add(name)
        if self.escaped:
            self._find_hidden_calls()

    def _find_hidden_calls(self) -> None:
        """Where such a function is called without a call that shows it: as a decorator, or by an attribute that was set."""
        for node in self.nodes:
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                self.attributes.add(node.attr)
            elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0])[:2] == "__":
                if self._dotted(node.value) in self.escaped:  # a method that Python calls by itself
                    self.host.find("code.exec_computed")
            elif (isinstance(node, ast.Call) and self._dotted(node.func) == "setattr") or (
                isinstance(node, ast.FunctionDef | ast.ClassDef)
                and any(self._dotted(decorator) in self.escaped for decorator in node.decorator_list)
            ):
                self.host.find("code.exec_computed")

    def _forks(self, loop: ast.AST) -> bool:
        return any(
            isinstance(node, ast.Call) and (self._dotted(node.func) or "") in ("os.fork", "os.forkpty")
            for node in ast.walk(loop)
        )

    def _fills(self, loop: ast.While) -> bool:
        """`while True: f.write(x)`: it writes for ever, and nothing in it waits or leaves."""
        inside = list(ast.walk(loop))
        if not (isinstance(loop.test, ast.Constant) and loop.test.value) or any(isinstance(n, _LEAVES) for n in inside):
            return False
        called = {_last(node.func) for node in inside if isinstance(node, ast.Call)}
        return not called.isdisjoint(_WORDS.writers) and called <= _WORDS.writers | _WORDS.quick

    def _dotted(self, node: ast.AST) -> str | None:
        """`os.system` for whatever refers to it: an alias, getattr, __import__."""
        if isinstance(node, ast.Name):
            bound = self.values.functions.get(node.id)
            return self.names.get(node.id) or (bound[0] if bound else None) or self._imported(node.id)
        if isinstance(node, ast.Attribute):
            return f"{self._dotted(node.value) or '?'}.{node.attr}"
        if isinstance(node, ast.Call):
            return self._returned(node)
        if isinstance(node, ast.Subscript) and (base := self._dotted(node.value)):
            key = fold(node.slice, self.constants)
            if not isinstance(key, str):
                return "getattr.?" if base in _WORDS.namespaces else None
            if base in _WORDS.namespaces:
                return self.names.get(key) or self._imported(key)
            return f"{base.removesuffix('.__dict__')}.{key}"
        return None

    def _returned(self, node: ast.Call) -> str | None:
        """The module or function that a call returns."""
        function = _usual_name(self._dotted(node.func) or "")
        if function.endswith(".__getattribute__") and node.args:
            return self._attribute(node)
        if function in ("__import__", "importlib.import_module") and node.args:
            module = fold(node.args[0], self.constants)
            return module if isinstance(module, str) else "?"
        if function == "getattr" and len(node.args) >= 2:
            attribute = fold(node.args[1], self.constants)
            return f"{self._dotted(node.args[0])}.{attribute}" if isinstance(attribute, str) else "getattr.?"
        if function == "vars" and node.args:
            return self._dotted(node.args[0])
        if function in _WORDS.namespaces and not node.args:
            return function
        if function == "eval" and node.args and isinstance(text := fold(node.args[0], self.constants), str):
            return text if re.fullmatch(r"[\w.]+", text) else "?"
        return None

    def _attribute(self, node: ast.Call) -> str:
        """`os.__getattribute__("system")`, `object.__getattribute__(os, "system")`."""
        owner = node.args[0] if len(node.args) > 1 else getattr(node.func, "value", node.func)
        return f"{self._dotted(owner)}.{fold(node.args[-1], self.constants) or '?'}"

    def _callees(self, node: ast.Call) -> list[str]:
        """The full names of what a call may call."""
        dotted = self._dotted(node.func) or ""
        names = [dotted]
        if isinstance(node.func, ast.Name) and node.func.id not in self.names:
            names += self.values.functions.get(node.func.id, [])
        if self.escaped and not self._is_named(node.func, dotted):
            names += self.escaped
        owner, _, last = dotted.rpartition(".")
        last = last.lstrip("_")
        if last in _BY_LAST and owner and owner.partition(".")[0] not in self.names:  # whose it is, is not known
            names.append(_BY_LAST[last])
        return [_usual_name(name) for name in dict.fromkeys(names)]

    def _is_named(self, function: ast.AST, dotted: str) -> bool:
        """Whether it is a builtin, or a function of a module that was imported, by its name."""
        if isinstance(function, ast.Name):
            return function.id in self.names or hasattr(builtins, function.id)
        return dotted.partition(".")[0] in self.modules and dotted.rpartition(".")[2] not in self.attributes

    def _imported(self, name: str) -> str:
        """A name that may have come by `from module import *`."""
        full = [f"{module}.{name}" for module in self.everything_of]
        return next(
            (one for one in full if one in _RUNS | _DELETES or _RE.exec.fullmatch(one) or one in _WORDS.others), name
        )

    def _call(self, node: ast.Call) -> None:
        for name in self._callees(node):
            self._call_named(name, node)
        self._handed_over(node)

    def _call_named(self, name: str, node: ast.Call) -> None:
        args = [fold(arg, self.constants) for arg in node.args]
        args += [
            fold(keyword.value, self.constants)
            for keyword in node.keywords
            if keyword.arg in ("args", "path", "command", "cmd", "stmt", "setup", "extract_dir")
        ]
        if self._runs_code(name, node, args):
            pass
        elif name in _WORDS.shell or name in _WORDS.subprocess or _RE.exec.fullmatch(name):
            self._runs(name, node, args)
        elif name in _WORDS.tree or name in _WORDS.remove:
            self._deletes(name, args)
        elif name in ("os.kill", "os.killpg", "signal.pidfd_send_signal"):
            self._kills(args)
        elif (
            name == "getattr.?"
            or _RE.hidden.search(ast.unparse(node.func))
            or (name in _WORDS.by_name and not _WORDS.harmless_names.issuperset(map(str, args)))
        ):
            self.host.find("code.exec_computed")
        elif name in ("os.setuid", "os.setreuid", "os.setresuid") and args[:1] == [0]:
            self.host.find("privilege.root_shell")
        elif name in ("open", "io.open", "io.FileIO", "codecs.open", "os.open"):
            self._opens(node, args)
        elif name in ("os.chmod", "os.chown", "os.lchown") and args:
            self._changes_mode(name, args)
        elif name in _WORDS.copies:
            if len(args) > 1 and all(isinstance(arg, str) for arg in args[:2]):
                self.host.run("mv" if name in ("shutil.move", "os.rename", "os.replace") else "cp", args[0], args[1])
        else:
            self._method(name, node, args)
        if _RE.send.match(name) and self.is_private and self._sends(node, name):
            self.host.find("exfil.send")

    def _runs_code(self, name: str, node: ast.Call, args: list[Any]) -> bool:
        """Whether it is a call that runs Python code, loads objects that may, or unpacks an archive."""
        last = name.rpartition(".")[2]
        if name in ("exec", "eval", "compile", "code.interact"):
            self._evaluates(name, node, args)
        elif name in _WORDS.loaders:
            self._loads(name, args)
        elif name in _WORDS.evaluators or (last in _WORDS.console and "code" in self.modules):
            self._evaluates_later(args)
        elif name in _WORDS.unpicklers or (name in _WORDS.yaml and "!!python/" in str(args[:1])):
            given = args[0].decode("latin-1") if args and isinstance(args[0], bytes) else str(args[:1])
            if _RE.dangerous_words.search(given) or _RE.packed.search(ast.unparse(node)):
                self.host.find("code.exec_computed")
        elif last == "extractall" or (name == "shutil.unpack_archive" and len(args) > 1):
            if args and isinstance(args[-1], str):
                self.host.run("tar", "-xf", "archive", "-C", args[-1])
        else:
            return False
        return True

    def _handed_over(self, node: ast.Call) -> None:
        """Functions that are passed to others to call: `map(os.remove, x)`, `Thread(target=os.system, args=("ls",))`."""
        if (self._dotted(node.func) or "").partition(".")[0] in _WORDS.asks_about:
            return
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        names = {self._dotted(arg) for arg in given if isinstance(arg, ast.Attribute | ast.Name)}
        if not names.isdisjoint(_DELETES):
            self.host.find("code.delete")
        if not names.isdisjoint(_RUNS):
            for arg in given:
                value = fold(arg, self.constants)
                for text in value if isinstance(value, list) else [value]:
                    if isinstance(text, str):
                        self.host.shell(text)
                    elif text is None and self._dotted(arg) not in _RUNS:
                        self.host.find("code.exec_computed")

    def _sends(self, node: ast.Call, name: str) -> bool:
        carries = bool(node.keywords) or len(node.args) > 1 or _RE.private.search(ast.unparse(node)) is not None
        return carries and not name.endswith((".socket", ".Session", ".Client", ".get_event_loop"))

    def _method(self, name: str, node: ast.Call, args: list[Any]) -> None:
        if _RE.named_program.match(name) and not self.modules.isdisjoint(("sh", "plumbum")):
            self.host.run(
                _RE.named_program.sub("", name).partition(".")[0],
                *(arg if isinstance(arg, str) else UNKNOWN for arg in args),
            )
            return
        keywords = {keyword.arg or "": fold(keyword.value, self.constants) for keyword in node.keywords}
        if judge_module(self.host, name, args, keywords, self.modules):
            return
        last = name.rpartition(".")[2]
        if last in _WORDS.argv_methods and len(args) > 1 and isinstance(args[0], str):
            self.host.start(*(arg if isinstance(arg, str) else UNKNOWN for arg in args))
        if last == "close" and isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Call):
            self._empties(node.func.value)
        if last in ("send", "sendall", "sendto") and "socket" in self.modules and _RE.private.search(ast.unparse(node)):
            self.host.find("exfil.send")
        if last in ("kill", "terminate") and "process_iter" in self.text:
            self.host.find("proc.kill_force")
        elif last in _WORDS.sql and args and isinstance(args[0], str) and not _RE.in_memory.search(self.text):
            self.host.sql(args[0])
        elif name in ("sys.path.insert", "sys.path.append") and self.host.downloads:
            self.host.find("rce.download_to_shell")
        elif last in _WORDS.downloaders:
            for target in filter(lambda arg: isinstance(arg, str), args[1:]):
                self.host.write(target)
        elif last in _WORDS.store or _RE.deletes_all.search(ast.unparse(node)):
            self.host.find("sql.destructive")
        else:
            self._path_method(last, node, args)

    def _path_method(self, last: str, node: ast.Call, args: list[Any]) -> None:
        base = fold(node.func.value, self.constants) if isinstance(node.func, ast.Attribute) else None
        if last in _WORDS.methods_delete:
            if isinstance(base, str):
                self.host.delete(base, tree=last == "rmtree")
            elif _RE.listing.search(self.text):
                self.host.find("code.delete")
        elif last in ("rename", "replace") and isinstance(base, str) and len(args) == 1 and isinstance(args[0], str):
            if "Path(" in self.text:
                self.host.run("mv", base, args[0])
        elif (
            last in ("write_text", "write_bytes", "touch", "symlink_to", "rename", "replace")
            and isinstance(base, str)
            and "/" in base
        ):
            self.host.write(base)
        elif last in ("read_text", "read_bytes", "open") and isinstance(base, str):
            self.host.read(base)
        elif last in ("chmod",) and isinstance(base, str) and args and isinstance(args[0], int):
            self.host.run("chmod", oct(args[0])[2:], base)

    def _empties(self, opened: ast.Call) -> None:
        """`open(path, "w").close()` leaves nothing in the file."""
        args = [fold(arg, self.constants) for arg in opened.args]
        if self._dotted(opened.func) == "open" and len(args) > 1 and isinstance(args[1], str) and "w" in args[1]:
            if isinstance(args[0], str):
                self.host.write(args[0], empties=True)
            elif _RE.listing.search(self.text):
                self.host.find("code.delete")

    def _evaluates(self, name: str, node: ast.Call, args: list[Any]) -> None:
        if _RE.downloads.search(self.text):
            self.host.find("rce.download_to_shell")
        if args and isinstance(args[0], str):
            self.host.depth += 1
            judge(self.host, args[0])
            self.host.depth -= 1
        elif node.args and name != "compile":
            inner = node.args[0]
            while isinstance(inner, ast.Call) and inner.args and self._dotted(inner.func) == "compile":
                inner = inner.args[0]
            asks = isinstance(inner, ast.Call) and self._dotted(inner.func) == "input"
            if not asks and not isinstance(fold(inner, self.constants), str):
                self.host.find("code.exec_computed")

    def _evaluates_later(self, args: list[Any]) -> None:
        """`timeit.timeit(code, setup)` and the like: what is set up comes last."""
        code = "\n".join(arg for arg in reversed(args) if isinstance(arg, str))
        if code and self.host.depth <= MAX_DEPTH:
            self.host.depth += 1
            judge(self.host, code)
            self.host.depth -= 1

    def _loads(self, name: str, args: list[Any]) -> None:
        """Another file or module is run as a program."""
        given = args[1:2] if name.startswith("imp") else args[:1]
        if not given or not isinstance(given[0], str) or re.match(rf"/(?:dev|proc)/|.*{UNKNOWN}", given[0], re.S):
            self.host.find("code.exec_computed")
        else:
            self.host.start("python3", *(("-m",) if name == "runpy.run_module" else ()), given[0])

    def _runs(self, name: str, node: ast.Call, args: list[Any]) -> None:
        if "socket" in self.modules and "connect" in self.text:
            self.host.find("rce.reverse_shell")
            return
        if name == "webbrowser.get" and not (args and isinstance(args[0], str) and " " in args[0]):
            return
        first = args[0] if args else None
        stdin = self._input(name, node)
        reads_input = any(keyword.arg in ("input", "stdin") for keyword in node.keywords)
        if "urlretrieve" in self.text or (reads_input and _RE.downloads.search(self.text)):
            self.host.find("rce.download_to_shell")
        words = [_as_text(item) for item in first] if isinstance(first, list) else []
        program = next((keyword.value for keyword in node.keywords if keyword.arg == "executable"), None)
        if program is not None and words:
            found = fold(program, self.constants)
            words[0] = found if isinstance(found, str) else UNKNOWN
        through_shell = name in _WORDS.shell or any(
            keyword.arg == "shell" and fold(keyword.value, self.constants) not in (False, None)
            for keyword in node.keywords
        )
        if _RE.exec.fullmatch(name):
            flat = [word for arg in args for word in (map(_as_text, arg) if isinstance(arg, list) else [arg]) if word]
            flat = [word for word in flat if isinstance(word, str)]
            if flat:
                self.host.start(flat[0], *flat[2:], stdin=stdin)
            else:
                self.host.find("code.exec_computed")
        elif words and through_shell and words[0] != UNKNOWN and name not in _WORDS.shell:
            self.host.shell(words[0], stdin=stdin)
        elif words and words[0] != UNKNOWN:
            self.host.start(*words, stdin=stdin)
        elif isinstance(first, str) and first.lstrip()[:1] != UNKNOWN:
            if name.startswith("asyncio.create_subprocess_exec"):
                self.host.start(*(arg if isinstance(arg, str) else UNKNOWN for arg in args))
            elif through_shell or " " in first or name == "pty.spawn":
                self.host.shell(first, stdin=stdin)
            else:
                self.host.start(first, stdin=stdin)
        else:
            self.host.find("code.exec_computed")

    def _input(self, name: str, node: ast.Call) -> str | None:
        """What the program reads: given with `input=`, or written to its pipe anywhere in this program."""
        given = {keyword.arg: keyword.value for keyword in node.keywords}
        texts: list[Any] = []
        if "input" in given:
            texts = [fold(given["input"], self.constants)]
        elif "stdin" in given and (self._dotted(given["stdin"]) or "").rpartition(".")[2] == "PIPE":
            texts = [fold(arg, self.constants) for arg in self.typed]
        elif "stdin" in given:
            nothing = (self._dotted(given["stdin"]) or "").endswith("DEVNULL") or isinstance(
                given["stdin"], ast.Constant
            )
            return None if nothing else UNKNOWN
        elif (name == "os.popen" and len(node.args) > 1) or "dup2" in self.text:
            texts = [fold(arg, self.constants) for arg in self.typed]
        else:
            return None
        decoded = [text.decode("utf-8", "replace") if isinstance(text, bytes) else text for text in texts]
        return "\n".join(text if isinstance(text, str) else UNKNOWN for text in decoded)

    def _deletes(self, name: str, args: list[Any]) -> None:
        path = args[0] if args and isinstance(args[0], str) else None
        if name in _WORDS.tree:
            self.host.delete(path, tree=True)
        elif path is not None:
            self.host.delete(path, tree=False)
        elif _RE.listing.search(self.text):
            self.host.find("code.delete")

    def _changes_mode(self, name: str, args: list[Any]) -> None:
        mode = oct(args[1])[2:] if len(args) > 1 and isinstance(args[1], int) else UNKNOWN
        walked = _RE.walked.search(self.text)
        path = args[0] if isinstance(args[0], str) else walked[2] if walked else None
        if path is not None:
            self.host.run("chmod" if "chmod" in name else "chown", *(["-R"] if walked else []), mode, path)

    def _kills(self, args: list[Any]) -> None:
        process = args[0] if args else None
        if args[1:2] == [0]:
            return
        if process in (-1, 1):
            self.host.find("proc.kill_all")
        elif process in (None, 0) or "pid" in self.text:
            self.host.find("proc.kill_force")

    def _opens(self, node: ast.Call, args: list[Any]) -> None:
        mode = next(
            (fold(keyword.value, self.constants) for keyword in node.keywords if keyword.arg == "mode"),
            args[1] if len(args) > 1 else "r",
        )
        if not args or not isinstance(args[0], str):
            return
        flags = ast.unparse(node.args[1]) if len(node.args) > 1 else ""
        writes = (isinstance(mode, str) and not set(mode).isdisjoint("wax+")) or (
            (isinstance(mode, int) and mode & 3 != 0)
            or re.search(r"O_(?:WRONLY|RDWR|TRUNC|CREAT|APPEND)", flags) is not None
        )
        empties = ".truncate(" in self.text
        self.host.write(args[0], empties=empties) if writes else self.host.read(args[0])


def _settings(nodes: list[ast.AST]) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Names and values that may be variables of the environment: set there, or in a dictionary that a program gets."""
    for node in nodes:
        if isinstance(node, ast.Assign):
            yield from ((target.slice, node.value) for target in node.targets if isinstance(target, ast.Subscript))
        elif isinstance(node, ast.Dict):
            yield from ((key, value) for key, value in zip(node.keys, node.values, strict=True) if key is not None)
        elif isinstance(node, ast.Call):
            yield from ((ast.Constant(keyword.arg), keyword.value) for keyword in node.keywords)
            if _last(node.func) in ("setdefault", "putenv", "__setitem__") and len(node.args) == 2:
                yield node.args[0], node.args[1]


def _end(node: ast.expr) -> tuple[int, int]:
    """Where it ends: what is called first ends first."""
    return node.end_lineno or 0, node.end_col_offset or 0


def _last(function: ast.expr) -> str:
    """The last part of a function's name."""
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _as_text(item: Any) -> str:
    """A word of a command line."""
    return UNKNOWN if item is None else item.decode("utf-8", "replace") if isinstance(item, bytes) else str(item)


def _usual_name(name: str) -> str:
    """The name by which a function is listed here."""
    name = _RE.builtins.sub("", name).removesuffix(".__call__")
    return f"os.{name[6:]}" if name.startswith("posix.") else name


def judge_module(host: Host, name: str, args: list[Any], keywords: dict[str, Any], modules: AbstractSet[str]) -> bool:
    """Whether the call `name(args)` is one of theirs; what is dangerous in it is reported to the host."""
    last = name.rpartition(".")[2]
    first = args[0] if args else None
    if isinstance(first, bytes):
        first = first.decode("utf-8", "replace")
    if not modules.isdisjoint(("ctypes", "cffi")) and _from_c(host, last, args):
        return True
    if last in ("subprocess_exec", "subprocess_shell") and "asyncio" in modules:
        words = [arg if isinstance(arg, str) else UNKNOWN for arg in args[1:]]
        host.start(*words) if last == "subprocess_exec" else host.shell(words[0] if words else UNKNOWN)
        return True
    if name == "fileinput.input" and keywords.get("inplace") and isinstance(first, str):
        host.write(first)
        return True
    if name.endswith(".drop") and "pymongo" in modules and not args:
        host.find("sql.destructive")
        return True
    if "tkinter" in modules and last in ("eval", "evalfile"):
        host.find("code.exec_computed")
        return True
    if last in _WORDS.run_methods and not _WORDS.runners.isdisjoint(modules) and isinstance(first, str):
        host.shell(first)
        return True
    if "git" in modules and name.split(".")[-2:-1] == ["git"]:
        host.run("git", last.replace("_", "-"), *(arg if isinstance(arg, str) else UNKNOWN for arg in args))
        return True
    if not _WORDS.http.isdisjoint(modules):
        method = keywords.get("method") or (first if last in ("request", "stream") else None)
        if (last == "delete" and name != "delete") or (isinstance(method, str) and method.upper() == "DELETE"):
            host.find("cloud.api_delete")
            return True
    if not _WORDS.sdks.isdisjoint(modules) and _RE.deletes.fullmatch(last) and "." in name:
        host.find("container.remove" if "docker" in modules else "cloud.delete")
        return True
    return False


def _from_c(host: Host, name: str, args: list[Any]) -> bool:
    """A function of the C library: what it is given are bytes."""
    words = [arg.decode("utf-8", "replace") if isinstance(arg, bytes) else arg for arg in args if arg is not None]
    known = [word if isinstance(word, str) else UNKNOWN for word in words] or [UNKNOWN]
    if name in ("system", "popen"):
        host.shell(known[0])
    elif name.startswith("exec"):
        host.start(known[0], *known[2:])
    elif name == "rename":
        host.run("mv", *known)
    elif name in _C_LIBRARY and (name != "dlopen" or UNKNOWN not in known[0]):
        host.find(_C_LIBRARY[name])
    else:
        return False
    return True
