"""Tell whether a regular expression means the same to Python and to ripgrep."""

from __future__ import annotations

import re

# Anything else (look-around, back-references, \A, \p{..}, possessive quantifiers, class set operations, flags within, \B)
# exists in one of the two only, or means something else there.
_TOKEN = re.compile(
    r"""
      \\[dDwWsS]
    | (?: \\b | [\^$] ) (?![*+?{])                  # a place cannot be repeated in Python
    | \\[tnrfv]
    | \\[.^$*+?()\[\]{}|\\/\-]                      # an escaped character of the syntax
    | \\x[0-9a-fA-F]{2} | \\u[0-9a-fA-F]{4}
    | \(\?: | \(\?P<[A-Za-z_]\w*> | \((?!\?) | \)
    | \[\^? \]? (?: [^\]\[\\&~|\-] | \\[dDwWsStnrfv.^$*+?()\[\]{}|\\/\-] | (?<=[A-Za-z0-9])-(?=[A-Za-z0-9]) )+ -? \]
    | (?: [*+?] | \{\d+(?:,\d*)?\} ) \?? (?![*+?{])
    | [.|]
    | [^\\\[\](){}*+?.^$|]
    """,
    re.VERBOSE | re.ASCII,
)


def is_portable(pattern: str) -> bool:
    position = 4 if pattern.startswith("(?i)") else 0
    while position < len(pattern):
        token = _TOKEN.match(pattern, position)
        if token is None:
            return False
        position = token.end()
    return "\0" not in pattern and "\n" not in pattern
