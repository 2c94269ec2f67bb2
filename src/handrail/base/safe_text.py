"""Make text safe to show to a model: it cannot imitate the conversation's structure, no secret leaks, nothing is hidden from its
human reader, and a program's output is what a terminal would show."""

import codecs
import os
import re
import unicodedata

MAX_ERROR_CHARS = 2000
_MAX_PASSES = 8

# Patterns are strings, compiled by `re` with the first error: most starts see none.
_ROLE_TAGS = (
    r"(?i)</?\s*(?:\w+:)?(?:tool_calls?|function_calls?|tool_use|tool_results?|results?|responses?|outputs?|inputs?"
    r"|system|assistant|user|human|developer|invoke|parameter)\b[^<>]{0,200}>"
    r"|<\|[^<>|]{1,64}\|>"
)
_FENCES = r"`{3,}[\w-]*|~{3,}"
_CDATA = r"<!\[CDATA\[|\]\]>"
# C0 and C1 controls but tab and newline; zero-width and bidirectional marks; line and paragraph separators.
_INVISIBLE = "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
_ANSI = r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])"

_SECRET_SHAPES = (
    r"(?s)\b(?:sk|pk|rk)-[A-Za-z0-9_-]{16,}"
    r"|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}|\bglpat-[A-Za-z0-9_-]{16,}"
    r"|\bxox[abposr]-[A-Za-z0-9-]{10,}|\bhf_[A-Za-z0-9]{20,}|\bAKIA[0-9A-Z]{16}\b|\bAIza[0-9A-Za-z_-]{30,}"
    r"|\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{5,}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
)
_BEARER = r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{12,}"
_URL_PASSWORD = r"(?i)(\b[a-z][a-z0-9+.-]*://[^\s:/@]+):[^\s@/]+@"
_SECRET_NAME = r"(?i)(?:(?:^|_|api)key|token|secret|passw(?:or)?d|passphrase|credential)s?$"
_MIN_SECRET_CHARS = 8


def safe_error(message: str) -> str:
    """An error's text as the model may see it: no role tags, fences or controls, no secrets, at most 2,000 characters."""
    # A cut before the patterns run keeps a message of any size cheap; what they remove cannot bring back what was cut.
    text = message[: MAX_ERROR_CHARS * 8]
    text = re.sub(_INVISIBLE, "", re.sub(_ANSI, "", text))
    for _ in range(_MAX_PASSES):  # removing one tag can join the halves of another
        before, text = text, re.sub(_CDATA, "", re.sub(_FENCES, "", re.sub(_ROLE_TAGS, "", text)))
        if text == before:
            break
    else:
        text = re.sub(r"[<>`~]", "", text)  # built to be stripped for ever
    text = mask_secrets(well_formed(text)).strip()
    return text if len(text) <= MAX_ERROR_CHARS else text[: MAX_ERROR_CHARS - 1] + "…"


def mask_secrets(text: str) -> str:
    """Replace what looks like a secret, and the values of this process's own secret variables."""
    text = re.sub(_SECRET_SHAPES, "[secret]", text)
    text = re.sub(_BEARER, r"\1 [secret]", text)
    text = re.sub(_URL_PASSWORD, r"\1:[secret]@", text)
    for name, value in os.environ.items():
        if len(value) >= _MIN_SECRET_CHARS and value in text and re.search(_SECRET_NAME, name):
            text = text.replace(value, "[secret]")
    return text


def secret_values() -> tuple[str, ...]:
    """The values of this process's own secret variables."""
    global _known_secrets  # looked up for every text, and the variables hardly ever change
    encoded: dict[bytes, bytes] = os.environ._data  # type: ignore[attr-defined]  # decoding all takes fifty times as long
    known, values = _known_secrets
    if known != encoded:
        known = dict(encoded)
        decoded = [(os.fsdecode(name), os.fsdecode(value)) for name, value in known.items()]
        long = [(name, text) for name, text in decoded if len(text) >= _MIN_SECRET_CHARS]
        values = tuple(text for name, text in long if re.search(_SECRET_NAME, name))
        _known_secrets = known, values
    return values


_known_secrets: tuple[dict[bytes, bytes], tuple[str, ...]] = ({}, ())


def secret_places(text: str, values: tuple[str, ...] | None = None) -> list[tuple[int, int]]:
    """Start and end of what looks like a secret, or is one of these values (by default those of this process)."""
    places = [match.span() for match in re.finditer(_SECRET_SHAPES, text)]
    places += [(match.end(1) + 1, match.end()) for match in re.finditer(_BEARER, text)]
    places += [(match.end(1) + 1, match.end() - 1) for match in re.finditer(_URL_PASSWORD, text)]
    for value in secret_values() if values is None else values:
        if value in text:
            places += [match.span() for match in re.finditer(re.escape(value), text)]
    return places


def well_formed(text: str) -> str:
    """The same text, with lone surrogates (which no encoding can carry) replaced by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


_UNSEEN = frozenset({"Cc", "Cf", "Co", "Cn", "Cs", "Zl", "Zp"})
# How texts give a model instructions behind the user's back. They are compiled with the first text.
_INSTRUCTIONS = (
    r"\b(?:ignore|disregard|forget)\b.{0,30}\b(?:previous|prior|above|earlier|other|all)\b.{0,30}\b(?:instruction|prompt|rule|message)",
    r"\b(?:ignore|disregard|forget|override)\b.{0,40}\b(?:instruction|prompt|rule|guideline)s?\b.{0,20}\b(?:above|so far)\b",
    r"\[\s*(?:system|developer|admin)\b[^\]\n]{0,30}\]|\bsystem (?:prompt|message|override)\s*:",
    r"\bfrom now on\b.{0,20}\b(?:act|behave|pretend|respond) as\b",
    r"\b(?:do not|don't|never|without)\b.{0,10}\bask(?:ing)?\b.{0,25}\b(?:approval|permission|confirmation|user)\b",
    r"\b(?:do not|don't|never|without)\b.{0,20}\b(?:tell|mention|inform|show|reveal|notify)(?:ing)?\b.{0,20}"
    r"\b(?:user|human|person|anyone)\b",
    r"</?\s*(?:important|system|instructions?|secret|hidden|assistant)\b[^<>]{0,40}>",
    r"<!--",
    r"(?:~|\$HOME|/home/\w+|/root)/\.(?:ssh|aws|gnupg|config|netrc)|\bid_(?:rsa|ed25519)\b",
    r"\bbefore\b.{0,40}\b(?:using|calling|any)\b.{0,40}\btools?\b.{0,60}\b(?:read|send|pass|include|call)\b",
    r"\byou are now\b|\bnew instructions?:",
)


def suspicion_of(text: str) -> str:
    """Why the user should look at the text before a model sees it, as the end of a sentence. Empty: nothing suspicious."""
    return unseen_in(text) or instructions_in(text)


def unseen_in(text: str) -> str:
    """The same for invisible characters only."""
    unseen = sorted(filter(_is_unseen, set(text)))
    return "has invisible characters: " + " ".join(f"U+{ord(each):04X}" for each in unseen[:5]) if unseen else ""


def instructions_in(text: str) -> str:
    """The same for instructions to a model only."""
    for pattern in _INSTRUCTIONS:
        if found := re.search(pattern, text, re.IGNORECASE):
            return f"seems to give orders to the model: {found[0][:80]!r}"
    return ""


def made_visible(text: str) -> str:
    """The text with invisible characters written as their code points."""
    return "".join(f"\\u{{{ord(each):x}}}" if _is_unseen(each) else each for each in text)


def without_unseen(text: str) -> str:
    """The text without invisible characters. Persian's zero-width non-joiner stays, and letters newer than this Python."""
    candidates = filter(_is_unseen, set(text) - {"\u200c"})
    unseen = [each for each in candidates if each >= "\U000e0000" or unicodedata.category(each) != "Cn"]
    return text.translate(dict.fromkeys(map(ord, unseen))) if unseen else text


def _is_unseen(character: str) -> bool:
    # The joiner between the parts of an emoji is visible; of the variation selectors only those of emoji are in use, and the
    # others have been used to hide whole sentences.
    is_selector = "\U000e0100" <= character <= "\U000e01ef"
    return character not in "\t\n\r\u200d" and (is_selector or unicodedata.category(character) in _UNSEEN)


# What needs no care: tab, line feed and the printable part of ASCII; and, but for what follows C2, all other characters.
_PLAIN_BYTES = bytes([9, 10, *range(32, 127)])
_TEXT_BYTES = _PLAIN_BYTES + bytes(byte for byte in range(128, 256) if byte != 0xC2)
_SPECIAL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_COLOUR = re.compile(r"\x1b\[[0-9;:]*m")
# A terminal's own strings (window titles, links) end soon; one that does not is something else.
_MAX_STRING = 4096
_TOKEN = re.compile(
    r"(?P<text>[^\x00-\x08\x0a-\x1f\x7f-\x9f]+)|(?P<control>[\n\r\x08])"
    r"|\x1b\[(?P<numbers>[0-?]*)[ -/]*(?P<command>[@-~])"
    rf"|\x1b[\]PX^_][^\x07\x1b]{{0,{_MAX_STRING}}}(?:\x07|\x1b\\)"
    r"|\x1b[ -/]*[0-~]"
    r"|(?P<stray>[\x00-\x06\x0b\x0c\x10-\x1a\x1c-\x1f\x80-\x9f]+)"
    r"|[\x07\x0e\x0f\x1b\x7f]"  # bell, other character sets, a lone escape, delete: nothing to see
)
# The start of an escape sequence whose rest has not come yet.
_BEGUN = re.compile(rf"\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b]{{0,{_MAX_STRING}}}\x1b?|[ -/]*)")
# A line is drawn in parts of this length: a carriage return goes back to the beginning of a part.
_PART_CHARS = 8192


def clean(data: bytes) -> str:
    """A program's whole output, as lines of text that a terminal would show. Colours and cursor movements go, a progress bar is
    its last state, a backspace removes a character, and what is not text is shown as `\\0` or `\\xff`. Bytes may come in any
    pieces: what comes out does not depend on where they were cut."""
    if data.isascii() and not data.translate(None, _PLAIN_BYTES):
        return data.decode("ascii")
    cleaner = TextCleaner()
    return cleaner.feed(data) + cleaner.finish()


class TextCleaner:
    """The same for an output that comes in pieces. The line that is being drawn is held back until it ends."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        self._begun = ""
        self._line, self._column = "", 0

    def feed(self, data: bytes) -> str:
        # Looking for single characters in bytes is many times faster than a pattern that finds all of them in text.
        strays = data.translate(None, _TEXT_BYTES)
        is_usual = not (strays.strip(b"\x1b\r") or self._begun or self._decoder.getstate()[0])
        text = self._begun + self._decoder.decode(data)
        if strays or self._begun:
            text, self._begun = _without_begun(text)
        return self._draw(text, is_usual=is_usual)

    def finish(self) -> str:
        """What was held back. Half of an escape sequence is dropped."""
        rest = self._decoder.decode(b"", final=True)
        drawn = self._draw(self._begun + rest) if rest else ""
        drawn += self._line
        self._begun, self._line, self._column = "", "", 0
        return drawn

    def _draw(self, text: str, *, is_usual: bool = False) -> str:
        """`is_usual`: of all controls there are but escapes and carriage returns."""
        # Most coloured output has nothing but colours, and most carriage returns end a line.
        if "\x1b" in text:
            colourless, count = _COLOUR.subn("", text)
            text = colourless if count == text.count("\x1b") else text
        if "\r" in text and text.count("\r") == text.count("\r\n"):
            text = text.replace("\r\n", "\n")
        has_special = "\x1b" in text or "\r" in text or (not is_usual and _SPECIAL.search(text) is not None)
        if self._column != len(self._line) or has_special:
            return "".join(self._put(match) for match in _TOKEN.finditer(text))
        text = self._line + text
        ended = text.rfind("\n") + 1
        ended += (len(text) - ended) // _PART_CHARS * _PART_CHARS
        self._line = text[ended:]
        self._column = len(self._line)
        return text[:ended]

    def _put(self, match: re.Match[str]) -> str:
        kind, text = match.lastgroup, match.group()
        if kind == "text":
            return self._write(text)
        if kind == "control" and text == "\n":
            return self._end_line()
        if kind == "control":
            self._column = 0 if text == "\r" else max(0, self._column - 1)
        elif kind == "command":
            return self._command(match.group("command"), match.group("numbers"))
        elif kind == "stray":
            return self._write("".join("\\0" if char == "\0" else f"\\x{ord(char):02x}" for char in text))
        return ""

    def _write(self, text: str) -> str:
        ended = ""
        while text:
            part, text = text[: _PART_CHARS - self._column], text[_PART_CHARS - self._column :]
            after = self._column + len(part)
            if self._column == len(self._line):
                self._line += part
            else:
                self._line = self._line[: self._column].ljust(self._column) + part + self._line[after:]
            self._column = after
            if after == _PART_CHARS:
                ended += self._line
                self._line, self._column = "", 0
        return ended

    def _end_line(self) -> str:
        line, self._line, self._column = self._line, "", 0
        return line + "\n"

    def _command(self, command: str, numbers: str) -> str:
        """Those that progress bars and prompts are drawn with."""
        first = numbers.partition(";")[0]
        count = int(first[:5]) if first.isascii() and first.isdigit() else 0
        if command == "K" and count == 1:  # erase up to the cursor; else behind it, or all
            self._line = " " * min(self._column + 1, len(self._line)) + self._line[self._column + 1 :]
        elif command == "K":
            self._line = "" if count else self._line[: self._column]
        elif command in "CDG":
            there = {"C": self._column + max(1, count), "D": self._column - max(1, count), "G": count - 1}[command]
            self._column = min(max(0, there), _PART_CHARS - 1)
        elif command in "ABEFHdf" and self._line:  # to another line: what follows is not part of this one
            return self._end_line()
        return ""


def _without_begun(text: str) -> tuple[str, str]:
    """The text, and the escape sequence at its end that is not complete."""
    at = text.rfind("\x1b")
    if at == -1:
        return text, ""
    if at == len(text) - 1:  # it may be the end of a terminal's string
        earlier = text.rfind("\x1b", 0, at)
        at = earlier if earlier != -1 and _BEGUN.fullmatch(text, earlier) else at
    return (text[:at], text[at:]) if _BEGUN.fullmatch(text, at) else (text, "")
