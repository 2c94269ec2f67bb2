"""Suggest the known name that an unknown one was probably meant to be."""

from collections.abc import Iterable


def nearest(name: object, known: Iterable[str]) -> str | None:
    from difflib import get_close_matches  # only on the way to an error

    near = get_close_matches(str(name), list(known), n=1)
    return near[0] if near else None


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """The end of an error message: the nearest known name, or all of them."""
    known = list(known)
    near = nearest(name, known)
    return f"did you mean {near!r}?" if near else f"known: {', '.join(known) or 'none'}"
