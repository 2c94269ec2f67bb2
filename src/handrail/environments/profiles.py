"""The profiles of local commands: what they may write and reach without a question.

contained   the work tree, folders for temporary files and caches are writable; other writes, and connections to hosts that are
            not listed, wait for your answer
open        commands may do what you may, with `sudo`; only the gate protects Handrail's own files
sealed      no network, nothing outside of the work tree is written, and nobody is asked
"""

from enum import StrEnum

from ..errors import InvalidArguments


class Profile(StrEnum):
    CONTAINED = "contained"
    OPEN = "open"
    SEALED = "sealed"

    @classmethod
    def _missing_(cls, value: object) -> "Profile":
        """Spelled in another way. Raises InvalidArguments."""
        if isinstance(value, str) and (found := next((one for one in cls if one == value.strip().lower()), None)):
            return found
        raise InvalidArguments(f"there is no profile {value!r}; choose contained, open or sealed")


MEANINGS = {
    Profile.CONTAINED: "writes outside of the work tree wait for your answer",
    Profile.OPEN: "commands may write everything that you may, and `sudo` works; only file tools can be undone",
    Profile.SEALED: "no network, and nothing outside of the work tree is written",
}
