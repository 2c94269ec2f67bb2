"""The alphabet of the shell: what ends a word, what an operator looks like, what an escape means."""

import re

DECLARATIONS = frozenset(("declare", "typeset", "local", "export", "readonly"))
"""Commands whose arguments may be assignments."""
OPENERS = frozenset(("if", "while", "until", "for", "select", "case", "function", "{", "[[", "coproc"))
CLOSERS = frozenset(("then", "else", "elif", "fi", "do", "done", "esac", "}"))
RESERVED = frozenset((*OPENERS, *CLOSERS, "!", "time"))
WORD_ENDS = " \t\n;&|<>()"

LITERAL = re.compile(r"[^ \t\n'\"\\$`;&|<>()]+")
# Words that need no second look: nothing in them is expanded, none can be reserved or an assignment.
PLAIN = re.compile(r"[ \t]*([A-Za-z0-9_./:@%+,-]+)(?=[ \t\n;|&)]|\Z)")
PLAIN_LINE = re.compile(r"[ \t]*[A-Za-z0-9_./:@%+,-][A-Za-z0-9_./:@%+, \t-]*")
BETWEEN_BLANKS = re.compile(r"[^ \t]+")
IN_DOUBLE = re.compile(r'[^"\\$`]+')
IN_HERE = re.compile(r"[^\\$`]+")
IN_PARAMETER = re.compile(r"[^}'\"\\$`]+")
IN_ARITHMETIC = re.compile(r"[^()'\"\\$`]+")
IN_INDEX = re.compile(r"[^\[\]'\"\\$`<>]+")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
AFTER_DOLLAR = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!\-]")
IN_BRACES = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*#?$!\-]")
ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?=|\[)")
EQUALS = re.compile(r"(?:\\\n)*\+?(?:\\\n)*=")
REDIRECT = re.compile(r"(\d+|\{[A-Za-z_][A-Za-z0-9_]*(?:\[[\w@*]+\])?\})?(<<<|<<-|<<|<>|<&|>>|>&|>\||<|>)|(&>>|&>)")
PARAMETER_OPERATOR = re.compile(r":[-=?+]|[-=?+]|##|#|%%|%|//|/|\^\^|\^|,,|,|@|:")
EMPTY_PARENTHESES = re.compile(r"\([ \t]*\)")
# What a backslash and newline would cut in two: a name, a reserved word, an operator, the start of an expansion.
CUT_TOKEN = re.compile(r"[^ \t\n'\"\\`#]*\\\n")

_ESCAPE = re.compile(
    r"\\(?:([abeEfnrtv\\'\"?])|([0-7]{1,3})|x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|c(.)|(.))", re.S
)
_BRACED_HEX = re.compile(r"\\(?:x\{([0-9a-fA-F]*)\}?|.)", re.S)
_SIMPLE_ESCAPES = dict(zip("abeEfnrtv\\'\"?", "\a\b\x1b\x1b\f\n\r\t\v\\'\"?", strict=True))


def decode_escapes(text: str, *, dollar: bool = False) -> str:
    """Escapes as `echo -e` and `printf` read them; with `dollar` as `$'..'` does, where what follows a NUL is cut off."""
    if "\\" not in text:
        return text
    if dollar and "\\x{" in text:
        text = _BRACED_HEX.sub(_braced, text)
    found = _ESCAPE.sub(_decoded, text)
    return found.split("\0", 1)[0] if dollar else found


def _braced(match: re.Match[str]) -> str:
    r"""`\x{72}`: any number of digits, of which the last two count. Written as octal, so that it is decoded once."""
    return match.group() if match[1] is None else f"\\{int(match[1] or '0', 16) & 255:03o}"


def _decoded(match: re.Match[str]) -> str:
    simple, octal, two_hex, four_hex, eight_hex, control, other = match.groups()
    if simple is not None:
        return _SIMPLE_ESCAPES[simple]
    if octal is not None:
        return chr(int(octal, 8) & 255)
    if two_hex is not None:
        return chr(int(two_hex, 16))
    if four_hex is not None or eight_hex is not None:
        code = int(four_hex or eight_hex, 16)
        return chr(code) if code < 0x110000 else "\ufffd"
    if control is not None:
        return chr(ord(control) & 31)
    return "\\" + str(other)
