"""What keys mean below a question: a letter or a word answers, arrows choose and Enter takes what is chosen, Esc denies."""

from __future__ import annotations

import contextlib
import termios
from collections.abc import Iterator, Sequence

from ...protocols import ApprovalRequest, Decision
from .line_editor import KEY
from .prompt import ANSWERS, VIEW

EDIT, INSTEAD = "edit", "instead"
# What can be chosen beside the decisions, and what it means. A word is enough to add one: who asks acts on it.
OTHERS = {
    EDIT: "change it first; what you write is judged again",
    INSTEAD: "no, and say what to do instead",
    VIEW: "show all that would be written",
}
_BACK = ("\x1b[D", "\x1bOD", "\x1b[A", "\x1bOA")
_FORTH = ("\x1b[C", "\x1bOC", "\x1b[B", "\x1bOB", "\t")
# These last: one key alone is too easily pressed.
_TAKE_ENTER = (Decision.ALWAYS.value,)
NO_ANSWER = "\0"


def words_for(request: ApprovalRequest, *, has_more: bool) -> list[str]:
    """What can be answered to it."""
    fitting = {EDIT: bool(request.editable), INSTEAD: True, VIEW: has_more}
    return [*(decision.value for decision in request.offers), *(word for word in OTHERS if fitting[word])]


class Menu:
    """`words` are what can be answered. `chosen` is the one that Enter would take, None at first: Enter alone is no answer."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = list(words)
        self.chosen: int | None = None

    def feed(self, text: str) -> str:
        """The word that was answered; empty when there is none yet; NO_ANSWER for what means nothing here."""
        if (word := self._word(text.strip().lower())) and len(text.strip()) > 1:  # typed whole, or pasted
            return word
        for key in KEY.findall(text):
            if answered := self._press(key):
                return answered
        return ""

    def _press(self, key: str) -> str:
        if key in _BACK or key in _FORTH:
            step = 1 if key in _FORTH else -1
            start = self.chosen if self.chosen is not None else (-1 if step > 0 else 0)
            self.chosen = (start + step) % len(self.words)
            return ""
        if key in "\r\n":
            return NO_ANSWER if self.chosen is None else self.words[self.chosen]
        if key in ("\x1b", "\x04"):
            return Decision.DENY.value
        word = self._word(key.lower())
        if word in _TAKE_ENTER:
            self.chosen = self.words.index(word)
            return ""
        return word or NO_ANSWER

    def _word(self, typed: str) -> str:
        decision = ANSWERS.get(typed)
        if decision is not None and decision.value in self.words:
            return decision.value
        return next((word for word in self.words if word in OTHERS and typed in (word, word[0])), "")

    def line(self) -> str:
        """All words, the chosen one in brackets."""
        return ", ".join(f"[{word}]" if number == self.chosen else word for number, word in enumerate(self.words))


@contextlib.contextmanager
def by_key(number: int) -> Iterator[bool]:
    """Have the terminal give each key as it is pressed, and show none. Yields False where it cannot."""
    try:
        before = termios.tcgetattr(number)
        changed = list(before)
        changed[3] &= ~(termios.ECHO | termios.ICANON)
        termios.tcsetattr(number, termios.TCSANOW, changed)
    except (termios.error, OSError):
        yield False
        return
    try:
        yield True
    finally:
        with contextlib.suppress(termios.error, OSError):
            termios.tcsetattr(number, termios.TCSANOW, before)
