"""Input of one line or several, with history and completion, or plain lines from a terminal that cannot move its cursor.

Enter sends; Alt-Enter, Ctrl-J or a backslash at the end of the line start another one; what is pasted stays together, and is
folded when it is long. Ctrl-V attaches the image in the clipboard. Shift-Tab changes the mode.
"""

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from subprocess import DEVNULL

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Always, Condition
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output

from ...errors import HandrailError
from .mentions import FolderIndex
from .pastes import Pastes
from .screen import CLEAR, Screen
from .turn import Leave, signals

# Of each command what it does, and what can come after its name; after a tab, what that is.
Commands = Mapping[str, tuple[str, Callable[[], Iterable[str]]]]
_REFRESH_SECONDS = 1.0  # of the line below the prompt


class Input:
    """Reads one message after the other. `choices` are the slash commands, each with what may follow it."""

    def __init__(
        self,
        *,
        history: Path,
        choices: Callable[[], Commands],
        resources: Callable[[], Iterable[str]],
        toolbar: Callable[[], str],
        coloured: bool,
        folder: Callable[[], str],
        pastes: Pastes,
        next_mode: Callable[[], object],
        next_profile: Callable[[], object] = lambda: None,
    ) -> None:
        history.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(history, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))  # nobody else reads it
        self._pastes = pastes
        self._is_woken = False
        self._leave_soon: Callable[[], None] = lambda: None
        self._session: PromptSession[str] = PromptSession(
            history=_History(str(history), self._pastes),
            completer=_Words(choices, resources, folder),
            complete_while_typing=Condition(_completes),
            multiline=True,
            key_bindings=_keys(self._pastes, next_mode, next_profile),
            prompt_continuation="  ",
            bottom_toolbar=toolbar,
            refresh_interval=_REFRESH_SECONDS,
            color_depth=None if coloured else ColorDepth.DEPTH_1_BIT,
            reserve_space_for_menu=8,
            enable_suspend=True,
            output=_Output.from_pty(sys.stdout, term=os.environ.get("TERM")) if sys.stdout.isatty() else None,
        )
        for window in self._session.layout.find_all_windows():
            window.dont_extend_height = Always()  # the toolbar is below the text, not at the bottom of the screen

    def read(self, prompt: Callable[[], str], *, text: str = "") -> str:
        """A message; `text` is already typed there. Raises EOFError for Ctrl-D or a closed terminal, KeyboardInterrupt for
        Ctrl-C, Leave for a signal that ends the chat."""
        app, text = self._session.app, self._pastes.refolded(text)

        def leave() -> None:
            if app.future is None or app.future.done():
                return
            if received.end or received.interrupts:
                app.exit(exception=EOFError if received.end else KeyboardInterrupt)
            elif self._is_woken and self.is_empty:
                app.exit(result="")

        def leave_soon() -> None:
            with contextlib.suppress(RuntimeError):  # reading ends just now
                if app.loop is not None:
                    app.loop.call_soon_threadsafe(leave)

        with signals() as received:
            received.listener = self._leave_soon = leave_soon
            try:
                line = self._session.prompt(prompt, default=text, pre_run=leave, set_exception_handler=False)
            except OSError:  # the terminal was closed
                raise EOFError from None
            finally:
                self._is_woken = False
                if received.end:
                    raise Leave(128 + received.end)
        return self._pastes.unfolded(line)

    def wake(self) -> None:
        """From any thread: let `read` return nothing, unless the user has begun to type."""
        self._is_woken = True
        self._leave_soon()

    def remember(self, line: str) -> None:
        """Have it in the history, as if it had been read here."""
        self._session.history.append_string(line)

    @property
    def is_empty(self) -> bool:
        """Whether nothing had been typed when reading ended."""
        return not self._session.default_buffer.text


class _Output(Vt100_Output):
    def get_rows_below_cursor_position(self) -> int:
        """At least this one. The terminal is not asked: its answer is wrong if the window changes meanwhile, and then what was
        said is pushed out of the screen."""
        return 1

    def erase_down(self) -> None:
        self.write_raw(f"\x1b7{CLEAR}\x1b8")


class _History(FileHistory):
    """Keeps pastes whole: the marks that fold them mean nothing to another chat."""

    def __init__(self, filename: str, pastes: Pastes) -> None:
        super().__init__(filename)
        self._pastes = pastes

    def store_string(self, string: str) -> None:
        super().store_string(self._pastes.unfolded(string))


class PlainInput:
    """Reads as `Input` does. A backslash at the end of a line begins another one."""

    is_empty = True

    def __init__(self, screen: Screen) -> None:
        self._screen = screen

    def read(self, prompt: Callable[[], str], *, text: str = "") -> str:
        if text:
            self._screen.write(f"(was: {text})\n")
        self._screen.write(prompt())
        lines = [_line()]
        while lines[-1].endswith("\\"):
            lines[-1] = lines[-1][:-1]
            lines.append(_line())
        return "\n".join(lines)

    def remember(self, line: str) -> None:
        """There is no history."""

    def wake(self) -> None:
        """A line is read as a whole."""


def _line() -> str:
    if not (line := sys.stdin.readline()):
        raise EOFError
    return line.rstrip("\n")


class _Words(Completer):
    """Slash commands and what follows them; files after `@`; paths after `!`, and for words that look like one."""

    def __init__(
        self, choices: Callable[[], Commands], resources: Callable[[], Iterable[str]], folder: Callable[[], str]
    ) -> None:
        self._choices, self._resources, self._folder, self._files = choices, resources, folder, FolderIndex()
        self._paths = PathCompleter(expanduser=True)

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        line = document.current_line_before_cursor
        name, space, rest = line.partition(" ")
        choices = self._choices()
        if line.startswith("/") and not space and document.cursor_position_row == 0:
            for command, (about, _) in choices.items():
                if command.startswith(name[1:]):
                    yield Completion(f"/{command}", start_position=-len(name), display_meta=about)
        elif name[1:] in choices and line.startswith("/"):
            word = rest.rpartition(" ")[2]
            for each in choices[name[1:]][1]():
                if each.startswith(word):
                    value, _, about = each.partition("\t")
                    yield Completion(value, start_position=-len(word), display_meta=about)
        elif (mention := document.get_word_before_cursor(WORD=True)).startswith("@"):
            offered = [each for each in self._resources() if mention[1:].lower() in each.lower()]
            for path in [*self._files.matching(self._folder(), mention[1:]), *offered]:
                shown = f'"{path}"' if " " in path else path
                yield Completion(f"@{shown}", start_position=-len(mention))
        else:
            word = document.get_word_before_cursor(WORD=True).lstrip("!")
            if line.startswith("!") or "/" in word:
                yield from self._paths.get_completions(Document(word, len(word)), complete_event)


def _completes() -> bool:
    """Whether choices are shown while typing: for slash commands, and for `@file`."""
    document = get_app().current_buffer.document
    return document.text.startswith("/") or document.get_word_before_cursor(WORD=True).startswith("@")


_CLIPBOARDS = (
    ("wl-paste", "--type", "image/png"),
    ("xclip", "-selection", "clipboard", "-t", "image/png", "-o"),
    ("pngpaste", "-"),
)
_CLIPBOARD_SECONDS = 5.0


def clipboard_image() -> bytes:
    """The image in the clipboard of this machine as PNG, by a program that can read it; empty when there is none."""
    for command in _CLIPBOARDS:
        with contextlib.suppress(OSError, subprocess.SubprocessError):  # not installed, no clipboard, or it hangs
            found = subprocess.run(command, stdin=DEVNULL, capture_output=True, timeout=_CLIPBOARD_SECONDS, check=False)
            if found.stdout.startswith(b"\x89PNG"):
                return found.stdout
    return b""


def _keys(pastes: Pastes, next_mode: Callable[[], object], next_profile: Callable[[], object]) -> KeyBindings:
    keys = KeyBindings()

    @keys.add("c-v")
    def paste_image(event: KeyPressEvent) -> None:
        if image := clipboard_image():
            event.current_buffer.insert_text(f"@{pastes.kept(image)} ")
        else:
            event.app.output.bell()

    @keys.add(Keys.BracketedPaste)
    def paste(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text(pastes.folded(event.data.replace("\r\n", "\n").replace("\r", "\n")))

    @keys.add("s-tab")
    def mode(event: KeyPressEvent) -> None:
        next_mode()
        event.app.invalidate()

    @keys.add("f2")
    def profile(event: KeyPressEvent) -> None:
        try:
            next_profile()
        except HandrailError:  # they run elsewhere
            event.app.output.bell()
        event.app.invalidate()

    @keys.add("enter")
    def send(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.complete_state and buffer.complete_state.current_completion:
            buffer.complete_state = None  # Enter takes what was chosen, and sends nothing yet
        elif buffer.document.current_line_before_cursor.endswith("\\"):
            buffer.delete_before_cursor()
            buffer.newline(copy_margin=False)
        else:
            buffer.validate_and_handle()

    @keys.add("escape", "enter")
    @keys.add("c-j")
    def another_line(event: KeyPressEvent) -> None:
        event.current_buffer.newline(copy_margin=False)

    return keys
