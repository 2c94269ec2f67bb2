"""The constant value of a Python expression, as far as it can be known without running it."""

import ast
import base64
import binascii
import bz2
import codecs
import re
import shlex
import zlib
from collections.abc import Callable
from typing import Any

from ..values.word_values import UNKNOWN

Constants = dict[str, Any]
ARGUMENTS = "sys.argv"
"""The name under which the arguments of the program are among the constants."""
_TEXT_METHODS = frozenset("join replace strip lower upper split lstrip rstrip format removeprefix removesuffix".split())
_MAX_TEXT = 100_000
_MAX_ITEMS = 1_000
_WIDE = re.compile(r"\d{4}|\*")
_BYTE_CODECS = ("base64", "hex", "zlib", "bz2", "base_64", "hex_codec", "base64_codec")
_HOMES = ("os.environ['HOME']", "environ['HOME']")


def fold(node: ast.AST | None, constants: Constants) -> Any:
    """A str, number, bytes or list; None when it is not known. Unknown parts of an f-string are `UNKNOWN`."""
    try:
        value = _fold(node, constants)
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError, OSError, zlib.error):
        return None
    return None if isinstance(value, str | bytes) and len(value) > _MAX_TEXT else value


def _fold(node: ast.AST | None, constants: Constants) -> Any:
    match node:
        case ast.Constant():
            return node.value
        case ast.Name():
            return constants.get(node.id)
        case ast.Attribute(value=ast.Name(id="sys"), attr="executable"):
            return "python3"
        case ast.Attribute(value=ast.Name(id="sys"), attr="argv"):
            return constants.get(ARGUMENTS)
        case ast.List() | ast.Tuple():
            return _list(node.elts, constants)
        case ast.Dict() if all(key is not None for key in node.keys):
            keys = [fold(key, constants) for key in node.keys]
            values = [fold(value, constants) for value in node.values]
            return dict(zip(keys, values, strict=True)) if all(keys) else None
        case ast.UnaryOp(op=ast.USub()):
            value = fold(node.operand, constants)
            return -value if isinstance(value, int | float) else None
        case ast.BinOp():
            return _binary(node, constants)
        case ast.JoinedStr():
            parts = [_formatted(part, constants) for part in node.values]
            return "".join(UNKNOWN if part is None else str(part) for part in parts)
        case ast.Subscript():
            return "~" if ast.unparse(node) in _HOMES else _subscript(node, constants)
        case ast.Call():
            return _call(node, constants)
    return None


def _formatted(part: ast.expr, constants: Constants) -> Any:
    """A part of an f-string; what is padded or cut is not computed."""
    if not isinstance(part, ast.FormattedValue):
        return fold(part, constants)
    return fold(part.value, constants) if part.format_spec is None and part.conversion in (-1, 115) else None


def _list(elements: list[ast.expr], constants: Constants) -> list[Any]:
    found: list[Any] = []
    for element in elements:
        value = fold(element.value if isinstance(element, ast.Starred) else element, constants)
        found += value if isinstance(element, ast.Starred) and isinstance(value, list) else [value]
    return found[:_MAX_ITEMS]


def _binary(node: ast.BinOp, constants: Constants) -> Any:
    left, right = fold(node.left, constants), fold(node.right, constants)
    if isinstance(node.op, ast.Add):
        if isinstance(left, str) or isinstance(right, str):
            return (UNKNOWN if left is None else left) + (UNKNOWN if right is None else right)
        return left + right if left is not None and right is not None else None
    if isinstance(node.op, ast.Mult) and isinstance(right, int) and right < 1000:
        if isinstance(left, str | bytes | list) and len(left) * right > _MAX_TEXT:
            return None
        return left * right if left is not None else None
    if isinstance(node.op, ast.Mod) and isinstance(left, str):
        if _WIDE.search(left):
            return None
        if isinstance(right, list):
            return left % tuple(UNKNOWN if item is None else item for item in right)
        return left % right if right is not None else re.sub(r"%(?:\(\w+\))?[a-z]", UNKNOWN, left)
    if isinstance(node.op, ast.Div) and isinstance(left, str) and isinstance(right, str):
        return f"{left.rstrip('/')}/{right}"  # pathlib
    if isinstance(node.op, ast.BitOr) and isinstance(left, int) and isinstance(right, int):
        return left | right
    return None


def _subscript(node: ast.Subscript, constants: Constants) -> Any:
    value = fold(node.value, constants)
    if value is None:
        return None
    if isinstance(node.slice, ast.Slice):
        bounds = (node.slice.lower, node.slice.upper, node.slice.step)
        return value[slice(*(fold(part, constants) for part in bounds))]
    index = fold(node.slice, constants)
    return value[index] if index is not None else None


def _call(node: ast.Call, constants: Constants) -> Any:
    args = [fold(arg, constants) for arg in node.args]
    if isinstance(node.func, ast.Name):
        return _builtin(node.func.id, args)
    if not isinstance(node.func, ast.Attribute):
        return None
    name = node.func.attr
    if name in ("getenv", "get", "expandvars") and args[:1] in (["HOME"], ["$HOME"]):
        return "~"
    if name in _DECODERS and args and args[0] is not None:
        return _DECODERS[name](args[0])
    if (
        name in ("expanduser", "abspath", "realpath", "normpath", "fspath", "Path", "PurePath", "resolve", "absolute")
        and args
    ):
        return args[0]
    if name == "join" and len(args) > 1 and all(isinstance(arg, str) for arg in args):
        return "/".join(arg.rstrip("/") for arg in args)
    if name == "home":
        return "~"
    if name == "mkdtemp" and not node.args and not node.keywords:
        return f"/tmp/tmp.{UNKNOWN}"
    if isinstance(node.func.value, ast.Name) and node.func.value.id == "shlex":
        if name == "split":
            return shlex.split(args[0])
        return " ".join(UNKNOWN if item is None else shlex.quote(item) for item in args[0]) if name == "join" else None
    if name == "format" and node.keywords:
        return _format(fold(node.func.value, constants), args, node.keywords, constants)
    return _method(name, fold(node.func.value, constants), args)


def _format(base: Any, args: list[Any], keywords: list[ast.keyword], constants: Constants) -> str | None:
    if not isinstance(base, str) or _WIDE.search(base):
        return None
    named = {keyword.arg or "": fold(keyword.value, constants) for keyword in keywords}
    if "" in named:  # **values
        return re.sub(r"\{[^{}]*\}", UNKNOWN, base)
    given = {name: UNKNOWN if value is None else value for name, value in named.items()}
    return base.format(*(UNKNOWN if arg is None else arg for arg in args), **given)


def _builtin(name: str, args: list[Any]) -> Any:
    if name == "chr" and isinstance(args[0], int):
        return chr(args[0])
    if name in ("str", "Path", "PurePath", "PosixPath") and args:
        if isinstance(args[0], bytes) and len(args) > 1:
            return _text(args[0])
        return str(args[0]) if args[0] is not None else None
    if name in ("bytes", "bytearray") and args and isinstance(args[0], list):
        return bytes(args[0])
    if name in ("list", "tuple") and isinstance(args[0], list | str):
        return list(args[0])
    return list(reversed(args[0])) if name == "reversed" and isinstance(args[0], list | str) else None


def _method(name: str, base: Any, args: list[Any]) -> Any:
    if isinstance(base, dict):
        found = getattr(base, name)(*args) if name in ("keys", "values", "items", "get") else None
        return found if name == "get" else [list(one) if name == "items" else one for one in found or ()] or None
    if isinstance(base, bytes) and name == "decode":
        return base.decode("utf-8", "replace")
    if not isinstance(base, str):
        return None
    if name == "encode":
        return base.encode()
    if name == "decode" and args and isinstance(args[0], str):
        return _text(_decoded(base.encode(), args[0])) if args[0] in _BYTE_CODECS else _decoded(base, args[0])
    if name == "joinpath" and all(isinstance(arg, str) for arg in args):
        return "/".join([base.rstrip("/"), *args])
    if name in _TEXT_METHODS:
        if name == "join":
            return base.join(UNKNOWN if item is None else item for item in args[0])
        if name == "replace" and len(args) > 1 and len(base) * len(args[1] or "") > _MAX_TEXT:
            return None
        if name == "format":
            if _WIDE.search(base):
                return None
            return base.format(*(UNKNOWN if arg is None else arg for arg in args))
        return None if any(arg is None for arg in args) else getattr(base, name)(*args)
    return base if name in ("expanduser", "resolve", "absolute", "decode", "as_posix") else None


def _decoded(data: Any, encoding: str) -> Any:
    if encoding == "zlib":
        return zlib.decompressobj().decompress(data, _MAX_TEXT)
    if encoding == "bz2":
        return bz2.BZ2Decompressor().decompress(data, _MAX_TEXT)
    return codecs.decode(data, encoding)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


_DECODERS: dict[str, Callable[[Any], str]] = {
    "fromhex": lambda data: _text(bytes.fromhex(data)),
    "unhexlify": lambda data: _text(binascii.unhexlify(data)),
    "a2b_hex": lambda data: _text(binascii.unhexlify(data)),
    "b64decode": lambda data: _text(base64.b64decode(data)),
    "urlsafe_b64decode": lambda data: _text(base64.urlsafe_b64decode(data)),
    "decodebytes": lambda data: _text(base64.decodebytes(data.encode() if isinstance(data, str) else data)),
    "a2b_base64": lambda data: _text(binascii.a2b_base64(data)),
    "b32decode": lambda data: _text(base64.b32decode(data)),
    "b85decode": lambda data: _text(base64.b85decode(data)),
    "unquote": lambda data: codecs.decode(data.replace("%", "\\x"), "unicode_escape") if "%" in data else data,
}
