"""Recognise a loop that starts programs or fills the disk forever: it never ends, and nothing in it waits."""

from collections.abc import Iterator

from ..grammar.syntax import AndOr, ArithmeticCommand, Block, Command, For, If, Literal, Script, Simple, While, Word
from ..values.data_files import Patterns, Words

_WORDS = Words(__file__)
_RE = Patterns(__file__)
_TRUE = (["true"], [":"], ["1"], ["[", "1", "]"], ["test", "1"], ["/bin/true"])
_FALSE = (["false"], ["/bin/false"], ["[", "]"])


def is_endless(loop: While) -> bool:
    """`while true`, `until false` and the like."""
    items = loop.condition.items
    commands = items[0].items[0][1].commands if len(items) == 1 and len(items[0].items) == 1 else []
    condition = commands[0] if len(commands) == 1 else None
    if isinstance(condition, ArithmeticCommand):
        return not loop.until and [part.text for part in condition.parts if isinstance(part, Literal)] == ["1"]
    return _words(condition) in (_FALSE if loop.until else _TRUE)


def loops_forever(code: str) -> bool:
    """Whether a program in a language like C has such a loop."""
    return _RE.endless.search(code) is not None


def starts_and_goes_on(body: Script) -> bool:
    """Whether a loop's body puts something into the background, and waits for nothing."""
    items = list(_items(body))
    return any(item.background for item in items) and all(
        item.background or isinstance(command, Block) or (_words(command) or [""])[0] in _WORDS.quick
        for item in items
        for _, pipeline in item.items
        for command in pipeline.commands
    )


def _items(script: Script) -> Iterator[AndOr]:
    """The lists of a script and of the blocks in it; what is in the background is not looked into."""
    for item in script.items:
        yield item
        for _, pipeline in () if item.background else item.items:
            for command in pipeline.commands:
                if isinstance(command, Block):
                    yield from _items(command.body)


def _words(command: Command | None) -> list[str]:
    """The words of a simple command; none when one of them has to be expanded first."""
    if not isinstance(command, Simple):
        return []
    texts = [word.plain or word.literal() for word in command.words if isinstance(word, Word)]
    return [] if None in texts else [text for text in texts if text is not None]


def goes_on_writing(body: Script) -> bool:
    """Whether nothing in a loop's body waits, or leaves it."""
    names = list(_commands(body))
    return bool(names) and all(command is not None and _name(command) in _WORDS.quick_writers for command in names)


def makes_files(body: Script) -> bool:
    """Whether each round makes a file under another name: `cp big $RANDOM`."""
    copies = (command.words for command in _commands(body) if command is not None and _name(command) in _WORDS.copies)
    return any(isinstance(word, Word) and word.literal() is None for words in copies for word in words[1:])


def _commands(script: Script) -> Iterator[Simple | None]:
    """The simple commands of a script; None for what is neither one nor made of them."""
    for command in (one for item in script.items for _, pipeline in item.items for one in pipeline.commands):
        yield from _inside(command)


def _inside(command: Command) -> Iterator[Simple | None]:
    if isinstance(command, Simple):
        if command.words or command.redirects:
            yield command
    elif isinstance(command, Block | For | While):
        yield from _commands(command.body)
    elif isinstance(command, If):
        for _, body in command.branches:
            yield from _commands(body)
        if command.otherwise is not None:
            yield from _commands(command.otherwise)
    else:
        yield None


def _name(command: Simple) -> str:
    first = command.words[0] if command.words else None
    return ":" if first is None else (first.literal() or "") if isinstance(first, Word) else ""
