"""Which characters of a text are invisible, or look like others. Each is shown by its number."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

# Letters of other scripts that are drawn like a Latin one.
_LETTERS = frozenset(
    "аеорсухѕіјԁһԛԝѵӏкԍмтвнАВЕЅІЈКМНОРСТУХԌԚԜѴӀ"  # Cyrillic
    "οανικρυγηωϲϳτΑΒΕΖΗΙΚΜΝΟΡΤΥΧϹͿ"  # Greek
    "օսցհոզяԼՕՏ"  # Armenian and others
    "ɑɡıȷɩƅʏᴀᴄᴅᴇᴊᴋᴍᴏᴘᴛᴜᴠᴡᴢꜱꜰɴʀʟɪʜɢʙⲟⲞᎪᏴᏟᎬᎻᎫᏞᎷᏢᏚᎢᏙᎳᏃ"
)
# Signs that are drawn like one that a shell obeys. A typographic apostrophe inside a word is harmless.
_SIGNS = frozenset("‐‑‒−⁃⁄∕⧸╱‘’‚‛′ʹʻʼˈ՚“”„‟″ˋ\u037e꞉ː∶ǃǀ∣❘․‥‹›˂˃∗⁎∼˜⧵∖᜵﹘")
# These have no shape at all, though its category is that of letters and symbols.
_BLANK = frozenset("\u115f\u1160\u3164\uffa0\u2800\u17b4\u17b5")
_UNSEEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
# Plain enough, though a compatibility mapping says that they stand for ASCII.
_FAMILIAR = frozenset("…²³¹ªº™½¼¾")


def hidden(text: str) -> Iterator[int]:
    """The positions of what must be shown by number. Tab and newline are left to the caller."""
    if text.isascii():
        yield from (place.start() for place in re.finditer(r"[\x00-\x08\x0b-\x1f\x7f]", text))
        return
    for index, character in enumerate(text):
        if character not in "\t\n" and _is_hidden(text, index, character):
            yield index
    for word in re.finditer(r"[^\W\d_]{1,256}", text):
        yield from _disguised(word)


def by_number(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _is_hidden(text: str, index: int, character: str) -> bool:
    if character.isascii():
        return character < " " or character == "\x7f"
    category = unicodedata.category(character)
    if category in _UNSEEN_CATEGORIES or category == "Zs" or character in _BLANK:
        return True
    if category in ("Mn", "Me"):  # it changes the look of the character before it
        return index == 0 or text[index - 1].isascii() or 0xFE00 <= ord(character) <= 0xFE0F or ord(character) > 0xE0000
    if character in _SIGNS:
        return not (character == "’" and text[index - 1 : index].isalpha() and text[index + 1 : index + 2].isalpha())
    if character in _FAMILIAR:
        return False
    return unicodedata.normalize("NFKC", character).isascii()


def _disguised(word: re.Match[str]) -> Iterator[int]:
    """Foreign letters in a word that is partly Latin, or that could be read as all Latin."""
    text = word[0]
    if text.isascii():
        return
    alike = [index for index, character in enumerate(text) if character in _LETTERS]
    if alike and (len(alike) == len(text) or any(character.isascii() for character in text)):
        yield from (word.start() + index for index in alike)
