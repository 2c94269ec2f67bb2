"""What was pasted into a chat: long text is folded wherever it is shown, and images are files until the chat ends."""

import re
import shutil
from pathlib import Path

from ...base.temporary_folders import make_folder

_MAX_LINES, _MAX_CHARS = 8, 2_000
_MARK = re.compile(r"\[Pasted text #(\d+) \+\d+ lines?\]")


class Pastes:
    """Folds long pastes: the chat shows `[Pasted text #1 +400 lines]`, and the message has all of it."""

    def __init__(self) -> None:
        self._texts: list[tuple[str, str]] = []  # each with its mark
        self._images, self._folder = 0, ""

    def close(self) -> None:
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)

    def kept(self, image: bytes) -> str:
        """A file that holds the image until the chat ends; the message that names it carries the image itself."""
        self._images += 1
        self._folder = self._folder or make_folder("pasted")
        path = Path(self._folder, f"image-{self._images}.png")
        path.write_bytes(image)
        return str(path)

    def folded(self, text: str) -> str:
        """What the chat shows of a paste: itself while it is short."""
        lines = len(text.splitlines())
        if lines <= _MAX_LINES and len(text) <= _MAX_CHARS:
            return text
        mark = f"[Pasted text #{len(self._texts) + 1} +{lines} line{'s' * (lines != 1)}]"
        self._texts.append((text, mark))
        return mark

    def unfolded(self, message: str) -> str:
        def whole(match: re.Match[str]) -> str:
            number = int(match[1])
            return self._texts[number - 1][0] if 0 < number <= len(self._texts) else match[0]

        return _MARK.sub(whole, message)

    def refolded(self, message: str) -> str:
        """A message as it is shown: with the mark of each paste in it."""
        for text, mark in self._texts:
            message = message.replace(text, mark)
        return message
