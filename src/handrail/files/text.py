"""Turn a file's bytes into text and back without losing any (encoding, byte order mark, line endings); its syntax; its diff."""

import codecs
import json
import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from difflib import unified_diff
from os.path import commonprefix
from typing import Literal, NamedTuple

from ..base.safe_text import well_formed

LineEndings = Literal["lf", "crlf", "mixed", "none"]
# The longer mark first: UTF-32's little-endian one starts with UTF-16's.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_ESCAPED = re.compile("[\udc80-\udcff]")
_CONTROLS = bytes(set(range(0x20)) - set(b"\b\t\n\r\f\x1b")) + b"\x7f"
_HIGH = bytes(range(0x80, 0x100))
_C1 = bytes(range(0x80, 0xA0))
_MAX_HIGH_SHARE = 0.3
_BARE_LF = re.compile(r"(?<!\r)\n")
_MAX_BYTES = 1 << 20
MAX_DIFF_CHARS = 8_000
MAX_COMPARED_LINES = 3_000
_MAX_LINE_CHARS = 500


class Text(NamedTuple):
    """A file's text. Bytes that are not UTF-8 are kept as surrogate escapes, so that writing it back restores them."""

    body: str
    codec: str = "utf-8"
    mark: bytes = b""
    broken_bytes: int = 0

    @property
    def encoding(self) -> str:
        """The name to report: `utf-8` unless something is special."""
        if self.broken_bytes:
            return f"utf-8 with {self.broken_bytes} invalid bytes"
        return "utf-8-sig" if self.mark == codecs.BOM_UTF8 else self.codec

    def encode(self, body: str) -> bytes:
        """Another body in the same encoding. Raises UnicodeEncodeError for characters that the encoding lacks."""
        if self.mark and body.startswith("\ufeff"):
            body = body[1:]
        return self.mark + body.encode(self.codec, "surrogateescape" if self.codec == "utf-8" else "strict")


def decode(data: bytes) -> Text | None:
    """The text in these bytes; None when they are not text."""
    for mark, codec in _MARKS:
        if data.startswith(mark):
            return _marked(data, mark, codec)
    if b"\0" in data:
        return None
    try:
        return Text(data.decode())
    except UnicodeDecodeError:
        return _broken_utf8(data) or _single_byte(data)


def line_endings(body: str) -> LineEndings:
    crlf = body.count("\r\n")
    bare = body.count("\n") - crlf
    if crlf and bare:
        return "mixed"
    return "crlf" if crlf else "lf" if bare else "none"


def with_crlf(body: str) -> str:
    return _BARE_LF.sub("\r\n", body)


def split_lines(body: str) -> list[str]:
    """The lines with their ends. Only a newline ends a line, as in every tool that counts lines."""
    if not body:
        return []
    lines = [line + "\n" for line in body.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def _marked(data: bytes, mark: bytes, codec: str) -> Text | None:
    rest = data[len(mark) :]
    try:
        return Text(rest.decode(codec), codec, mark)
    except UnicodeDecodeError:
        if codec != "utf-8" or b"\0" in rest:
            return None
    body = rest.decode("utf-8", "surrogateescape")
    return Text(body, codec, mark, len(_ESCAPED.findall(body)))


def _broken_utf8(data: bytes) -> Text | None:
    """UTF-8 with a few bad bytes: most of what is not ASCII is valid."""
    body = data.decode("utf-8", "surrogateescape")
    bad = len(_ESCAPED.findall(body))
    good = len(body) - bad - len(data.translate(None, _HIGH))
    if bad > good or len(data.translate(None, _CONTROLS)) < 0.99 * len(data):
        return None
    return Text(body, broken_bytes=bad)


def _single_byte(data: bytes) -> Text | None:
    """Western European text from before Unicode, only if it really looks like text."""
    high = len(data) - len(data.translate(None, _HIGH))
    if high > _MAX_HIGH_SHARE * len(data) or len(data.translate(None, _CONTROLS)) < len(data):
        return None
    if len(data.translate(None, _C1)) == len(data):
        return Text(data.decode("latin-1"), "latin-1")
    try:
        return Text(data.decode("cp1252"), "cp1252")
    except UnicodeDecodeError:
        return None


def syntax_error(path: str, data: bytes) -> str:
    """Where a file that was just written cannot be read by those that it is for: the error and its line. Empty if there is no
    error, or the language is none that is known here."""
    check = _CHECKS.get(path.rpartition(".")[2].lower())
    if check is None or len(data) > _MAX_BYTES or (text := decode(data)) is None:
        return ""
    try:
        check(text.body)
    except Exception as error:  # noqa: BLE001  each parser has its own
        return "" if isinstance(error, RecursionError) else " ".join(str(error).split())[:300]
    return ""


def _python(text: str) -> None:
    with warnings.catch_warnings(action="ignore"):
        compile(text, "this file", "exec", dont_inherit=True)


def _yaml(text: str) -> None:
    from ruamel.yaml import YAML  # heavy, and few files are YAML

    list(YAML(typ="rt", pure=True).load_all(text))


def _toml(text: str) -> None:
    import tomllib  # few files are TOML

    tomllib.loads(text)


_CHECKS: dict[str, Callable[[str], object]] = {
    "py": _python, "pyi": _python, "json": json.loads, "yaml": _yaml, "yml": _yaml, "toml": _toml,
}  # fmt: skip


def bounded_diff(before: str, after: str, *, path: str, to_path: str = "") -> str:
    """The diff of two texts, empty when they are equal. A long one is cut, with a line that says how much is missing."""
    old, new = split_lines(before), split_lines(after)
    start, end = _unchanged(old, new)
    changed_old, changed_new = len(old) - start - end, len(new) - start - end
    if max(changed_old, changed_new) > MAX_COMPARED_LINES:  # comparing costs the product of the two
        return f"[from line {start + 1} on, {changed_old} lines were replaced by {changed_new}: too long to show]"
    lines = [line for piece in unified_diff(old, new, path, to_path or path) for line in _ended(piece)]
    return well_formed(_bounded(lines))


def _unchanged(old: list[str], new: list[str]) -> tuple[int, int]:
    """How many lines at the beginning, and how many at the end, are the same."""
    start = len(commonprefix([old, new]))  # noqa: RUF071  of lists it compares the elements
    return start, len(commonprefix([old[start:][::-1], new[start:][::-1]]))  # noqa: RUF071  the same


def _ended(line: str) -> Iterable[str]:
    return (line[:-1],) if line.endswith("\n") else (line, "\\ No newline at end of file")


def diff_to_approve(before: str, after: str, *, path: str, to_path: str = "", is_new: bool = False) -> str:
    """The diff for a person who is to say yes to it: all of it, line by line. One too long to be worked out shows what goes
    and what comes in one block."""
    old, new = split_lines(before), split_lines(after)
    names = ("/dev/null" if is_new else path, to_path or path)
    if max(len(old), len(new)) <= MAX_COMPARED_LINES:
        lines = [line for piece in unified_diff(old, new, *names) for line in _ended(piece)]
    else:
        start, end = _unchanged(old, new)
        gone, come = old[start : len(old) - end], new[start : len(new) - end]
        place = f"@@ -{start + 1},{len(gone)} +{start + 1},{len(come)} @@"
        marked = [*(f"-{line}" for line in gone), *(f"+{line}" for line in come)]
        body = [line for piece in marked for line in _ended(piece)]
        lines = [f"--- {names[0]}", f"+++ {names[1]}", place, *body] if marked else []
    return well_formed("\n".join(lines))


def _bounded(lines: Sequence[str]) -> str:
    kept: list[str] = []
    left = MAX_DIFF_CHARS
    for number, line in enumerate(lines):
        long = len(line) - _MAX_LINE_CHARS
        text = line if long <= 0 else f"{line[:_MAX_LINE_CHARS]} [{long} more characters]"
        left -= len(text) + 1
        if left < 0:
            kept.append(f"[{len(lines) - number} more lines of diff]")
            break
        kept.append(text)
    return "\n".join(kept)
