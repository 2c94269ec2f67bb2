"""Find what a text hides from its human reader to instruct a model."""

from __future__ import annotations

import re
import unicodedata

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
        found = re.search(pattern, text, re.IGNORECASE)
        if found:
            return f"seems to give orders to the model: {found[0][:80]!r}"
    return ""


def made_visible(text: str) -> str:
    """The text with invisible characters written as their code points."""
    return "".join(f"\\u{{{ord(each):x}}}" if _is_unseen(each) else each for each in text)


def without_unseen(text: str) -> str:
    """The text without invisible characters. Persian's zero-width non-joiner stays, and letters newer than this Python."""
    unseen = [
        each
        for each in set(text)
        if _is_unseen(each) and each != "\u200c" and (each >= "\U000e0000" or unicodedata.category(each) != "Cn")
    ]
    return text.translate(dict.fromkeys(map(ord, unseen))) if unseen else text


def _is_unseen(character: str) -> bool:
    # The joiner between the parts of an emoji is visible; of the variation selectors only those of emoji are in use, and the
    # others have been used to hide whole sentences.
    return character not in "\t\n\r\u200d" and (
        unicodedata.category(character) in _UNSEEN or "\U000e0100" <= character <= "\U000e01ef"
    )
