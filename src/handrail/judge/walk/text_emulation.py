"""Compute what a few text programs print when their input is known."""

import base64
import binascii
import functools
import re
from collections.abc import Callable, Sequence

from ..grammar.lexical import decode_escapes
from ..values.data_files import read_tables
from ..values.taints import taints_of
from ..values.word_values import EMPTY, UNKNOWN, Arg, Value, joined
from .operators import escaped

_MAX_INPUT = 1 << 17
_SPECIFIER = re.compile(r"%(-?[0 +#]*)(\*|\d+)?(?:\.(\*|\d+))?([sbdiuqxXoc%])")
_OPEN_ESCAPE = re.compile(rf"\\[xuU]?[0-9a-fA-F]{{0,7}}{UNKNOWN}")
_SETS = {
    "[:lower:]": "abcdefghijklmnopqrstuvwxyz",
    "[:upper:]": "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "[:digit:]": "0123456789",
    "[:space:]": " \t\n\r\f\v",
    "[:blank:]": " \t",
}
_FILE_READERS = frozenset(("cat", "tac", "rev", "base64", "base32", "xxd", "head", "tail"))
Files = Callable[[str], "Value | None"]


def output(name: str, args: Sequence[Arg], stdin: Value | None, files: Files) -> Value | None:
    """What the program prints; None when that is not computed here."""
    if name == "echo":
        return Value(echo(args), taints_of(args))
    filtering = _FILTERS.get(name)
    if filtering is None:
        return _without_input(name, args)
    if name not in _FILE_READERS:
        if stdin is None or not stdin.known:
            return None
    elif stdin is None and all(arg[:1] == "-" or files(arg) is None for arg in args) and "/dev/null" not in args:
        return None
    flags = [arg for arg in args if arg[:1] == "-" and arg != "-"]
    operands = [arg for arg in args if arg[:1] != "-" or arg == "-"]
    source = stdin
    reads = operands if name in _FILE_READERS else ()
    if reads:
        if name in ("head", "tail") and flags and reads[0].isdigit():
            reads = reads[1:]
        contents = [
            stdin if operand == "-" else EMPTY if operand == "/dev/null" else files(operand) for operand in reads
        ]
        if not all(content is not None for content in contents):
            return None
        source = joined([content for content in contents if content is not None]) if reads else stdin
    if source is None or not source.known or len(source.text) > _MAX_INPUT:
        return source if source is not None and name == "cat" and not flags else None
    text = filtering(source.text, flags, operands)
    return None if text is None else Value(text, source.taints)


def _without_input(name: str, args: Sequence[Arg]) -> Value | None:
    if name == "printf":
        return Value(printf(args), taints_of(args))
    if name in ("true", "false", ":", "test", "["):
        return EMPTY
    if name == "handrail" and args[:2] == ["config", "path"]:
        return Value("~/.config/handrail/config.yaml\n")
    return Value(f"/usr/bin/{args[0]}\n") if name in ("which", "where") and len(args) == 1 else None


def echo(args: Sequence[str]) -> str:
    start = 0
    letters = ""
    while start < len(args) and args[start][:1] == "-" and re.fullmatch(r"-[neE]+", args[start]):
        letters += args[start][1:]
        start += 1
    text = " ".join(args[start:])
    interprets = "e" in letters and letters.rfind("e") > letters.rfind("E")
    return (_printed_escapes(text) if interprets else text) + ("" if "n" in letters else "\n")


def _printed_escapes(text: str) -> str:
    """As `echo -e` and `%b` have them: octal numbers start with a zero, which does not count."""
    return _unescaped(re.sub(r"\\0([0-7]{1,3})", r"\\\1", text).split("\\c", 1)[0])


def _unescaped(text: str) -> str:
    """With its escapes decoded; one that ends in something unknown may be any character."""
    return decode_escapes(_OPEN_ESCAPE.sub(UNKNOWN, text) if UNKNOWN in text else text)


def printf(args: Sequence[str]) -> str:
    """As the shell's own `printf`: the format is used again while there are arguments."""
    if args and args[0] == "--":
        args = args[1:]
    if not args:
        return ""
    template, rest, out = _unescaped(str(args[0])), list(reversed(args[1:])), []
    length = 0
    while True:
        before = len(rest)
        out.append(_SPECIFIER.sub(lambda match: _formatted(match, rest), template))
        length += len(out[-1])
        if length > _MAX_INPUT:
            return UNKNOWN
        if not rest or len(rest) == before:
            return "".join(out)


def _formatted(match: re.Match[str], rest: list[str]) -> str:
    flags, width, precision, letter = match.groups()
    if letter == "%":
        return "%"
    if width == "*":
        width = rest.pop() if rest else "0"
    if precision == "*":
        precision = rest.pop() if rest else "0"
    value = str(rest.pop()) if rest else ""
    if letter == "b":
        value = _printed_escapes(value)
    elif letter == "c":
        value = value[:1]
    elif letter == "q":
        value = escaped(value)
    elif letter in "xXod":
        value = _number(value, letter)
    if precision is not None and precision.isdigit() and letter in "sb":
        value = value[: int(precision)]
    if (width and len(width) > 3) or (precision and len(precision) > 3):
        return UNKNOWN
    if width and width.isdigit():
        value = value.ljust(int(width)) if "-" in flags else value.rjust(int(width), "0" if "0" in flags else " ")
    return value


def _number(text: str, letter: str) -> str:
    if text[:1] in ("'", '"'):
        number = ord(text[1:2] or "\0")
    elif re.fullmatch(r"-?(0x[0-9a-fA-F]+|\d+)", text):
        number = int(text, 0 if "x" in text else 8 if re.fullmatch(r"-?0[0-7]+", text) else 10)
    else:
        return UNKNOWN if UNKNOWN in text else text or "0"
    return format(number, "d" if letter == "d" else letter)


def _same(text: str, flags: Sequence[str], _: Sequence[str]) -> str | None:
    return None if flags else text


def _reversed_lines(text: str, *_: object) -> str:
    return "\n".join(line[::-1] for line in text.split("\n"))


def _last_first(text: str, *_: object) -> str:
    return "\n".join(reversed(text.rstrip("\n").split("\n"))) + "\n"


def _base64(text: str, flags: Sequence[str], _: Sequence[str], *, bits: int = 64) -> str | None:
    if any(re.match(r"-\w*[dD]|--d", flag) for flag in flags):
        decode, block = getattr(base64, f"b{bits}decode"), 4 if bits == 64 else 8
        return _decoded(text, lambda data: decode(data + "=" * (-len(data) % block)))
    encoded: bytes = getattr(base64, f"b{bits}encode")(text.encode("utf-8", "surrogateescape"))
    return encoded.decode() + "\n"


_base32 = functools.partial(_base64, bits=32)


def _openssl(text: str, flags: Sequence[str], operands: Sequence[str]) -> str | None:
    if "-d" in flags and ("base64" in operands or "-base64" in flags or "-a" in flags):
        return _decoded(text, base64.b64decode)
    return None


def _xxd(text: str, flags: Sequence[str], _: Sequence[str]) -> str | None:
    letters = "".join(flag.lstrip("-") for flag in flags)
    if "r" not in letters:
        return text.encode().hex() + "\n" if letters in ("p", "ps") else None
    if "p" in letters:
        return _decoded(text, bytes.fromhex)
    columns = [re.sub(r"^[0-9a-f]+:", "", line).split("  ")[0] for line in text.split("\n")]
    return _decoded("".join(columns), bytes.fromhex)


def _decoded(text: str, decode: Callable[[str], bytes]) -> str | None:
    try:
        return decode(re.sub(r"\s", "", text)).decode("utf-8", "replace")
    except (ValueError, binascii.Error):
        return None


def _tr(text: str, flags: Sequence[str], operands: Sequence[str]) -> str | None:
    letters = "".join(flag.lstrip("-") for flag in flags)
    sets = [_characters(operand) for operand in operands]
    if letters == "d" and len(sets) == 1:
        return "".join(char for char in text if char not in sets[0])
    if letters == "s" and len(sets) == 1:
        return re.sub(f"([{re.escape(sets[0])}])\\1+", r"\1", text) if sets[0] else text
    if letters or len(sets) != 2 or not sets[1]:
        return None
    first, second = sets
    return text.translate(dict(zip(map(ord, first), second.ljust(len(first), second[-1]), strict=False)))


def _characters(text: str) -> str:
    text = decode_escapes(text)
    for name, chars in _SETS.items():
        text = text.replace(name, chars)
    return re.sub(
        r"(.)-(.)", lambda m: "".join(map(chr, range(ord(m[1]), min(ord(m[2]), ord(m[1]) + 256) + 1))), text, flags=re.S
    )


def _cut(text: str, flags: Sequence[str], operands: Sequence[str]) -> str | None:
    joined_flags = "".join(flags)
    match = re.fullmatch(
        r"-[cb](\d*)(-?)(\d*)", joined_flags + "".join(operands) if joined_flags in ("-c", "-b") else joined_flags
    )
    lines = text.split("\n")
    if match:
        first, dash, last = match.groups()
        start = int(first or 1) - 1
        end = int(last) if last else None if dash else start + 1
        return "\n".join(line[start:end] for line in lines)
    options = " ".join([*flags, *operands])
    match = re.fullmatch(r"-d ?(.) ?-f ?(\d+)|-f ?(\d+) -d ?(.)", options)
    if match:
        delimiter, field = match[1] or match[4], int(match[2] or match[3])
        return "\n".join(
            (line.split(delimiter)[field - 1 : field] or [""])[0] if delimiter in line else line for line in lines
        )
    return None


def _sed(text: str, flags: Sequence[str], operands: Sequence[str]) -> str | None:
    scripts = [operand for operand in operands if operand]
    if len(scripts) != 1 or any(flag not in ("-e", "-E", "-r") for flag in flags):
        return None
    for script in scripts[0].split(";"):
        match = re.fullmatch(r"\s*s(\W)(.*?)\1(.*?)\1(g?)\s*", script, re.S)
        if match is None or re.search(r"[*+?{}()\\^$.\[\]&]", match[2] + match[3]):
            return None
        if not match[2] or len(match[3]) * text.count(match[2]) > _MAX_INPUT or len(text) > _MAX_INPUT:
            return None
        text = "\n".join(line.replace(match[2], match[3], -1 if match[4] else 1) for line in text.split("\n"))
    return text


def _head(text: str, flags: Sequence[str], operands: Sequence[str]) -> str | None:
    if flags[:1] in (["-c0"], ["--bytes=0"]) or (flags[:1] == ["-c"] and operands[:1] == ["0"]):
        return ""
    count = _count(flags, operands)
    return "".join(line + "\n" for line in text.split("\n")[:count]) if count is not None else None


def _tail(text: str, flags: Sequence[str], operands: Sequence[str]) -> str | None:
    count, lines = _count(flags, operands), text.removesuffix("\n").split("\n")
    return "".join(line + "\n" for line in lines[-count:]) if count else None


def _count(flags: Sequence[str], operands: Sequence[str]) -> int | None:
    match = re.fullmatch(r"-n?(\d+)", "".join(flags) + ("".join(operands[:1]) if flags == ["-n"] else ""))
    return int(match[1]) if match else None


def _tee(text: str, *_: object) -> str:
    return text


_FILTERS: dict[str, Callable[..., str | None]] = {
    program: globals()[f"_{name}"]
    for name, programs in read_tables(__file__)["filters"].items()
    for program in programs.split()
}
PROGRAMS = frozenset((*_FILTERS, "echo", "printf", "true", "false", ":", "test", "[", "which", "where", "handrail"))
