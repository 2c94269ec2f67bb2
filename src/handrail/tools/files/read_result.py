"""`read_result`: page through or search a stored result without running anything again."""

from collections.abc import Iterator

from ...core.builtin import integer, registry, tool_schema
from ...core.registry import tool_result
from ...errors import InvalidArguments, ResultNotFound, ToolFailed
from ...types import JsonDict, ToolContext

# A line longer than this is split, so that one line of ten megabytes can be paged too.
_LINE_CHARS = 2_000
_PAGE_CHARS = 40_000
_MATCH_SECONDS = 5.0


def read_result(args: JsonDict, *, context: ToolContext, **_: object) -> str:
    if (store := context.results) is None:
        raise ToolFailed("this runtime keeps no results")
    try:
        lines = list(_split(store.get(args["id"])))
    except ResultNotFound as error:
        raise ToolFailed(str(error)) from None
    return _matches(lines, args) if args.get("pattern") else _page(lines, args)


def _page(lines: list[str], args: JsonDict) -> str:
    first = args.get("offset", 1)
    if first > len(lines):
        raise InvalidArguments(f"offset {first} is past the end: the result has {len(lines)} lines")
    shown: list[str] = []
    used = 0
    for line in lines[first - 1 : first - 1 + args.get("limit", 500)]:
        used += len(line) + 1
        if used > _PAGE_CHARS and shown:
            break
        shown.append(line)
    last = first + len(shown) - 1
    more = {"next_offset": last + 1} if last < len(lines) else {}
    return tool_result(content="\n".join(shown), start_line=first, end_line=last, total_lines=len(lines), **more)


def _matches(lines: list[str], args: JsonDict) -> str:
    import regex  # unlike `re` it takes a timeout, which stops endless backtracking

    around, limit, skip = args.get("context", 0), args.get("limit", 100), args.get("offset", 1) - 1
    try:
        pattern = regex.compile(args["pattern"])
        hits = [number for number, line in enumerate(lines) if pattern.search(line, timeout=_MATCH_SECONDS)]
    except regex.error as error:
        raise InvalidArguments(f"pattern is not a regular expression: {error}") from None
    except TimeoutError:
        problem = f"pattern takes longer than {_MATCH_SECONDS:g} s on one line; write it more simply"
        raise InvalidArguments(problem) from None
    chosen: list[JsonDict] = []
    used = 0
    for hit in hits[skip : skip + limit]:
        low, high = max(0, hit - around), min(len(lines), hit + around + 1)
        text = "\n".join(lines[low:high])
        used += len(text)
        if used > _PAGE_CHARS and chosen:
            break
        chosen.append({"line": hit + 1, "text": text})
    done = skip + len(chosen)
    more = {"next_offset": done + 1} if done < len(hits) else {}
    return tool_result(matches=chosen, total_matches=len(hits), total_lines=len(lines), **more)


def _split(text: str) -> Iterator[str]:
    for line in text.split("\n"):
        if len(line) <= _LINE_CHARS:
            yield line
            continue
        for start in range(0, len(line), _LINE_CHARS):
            yield line[start : start + _LINE_CHARS]


registry.register(
    name="read_result",
    toolset="results",
    schema=tool_schema(
        "Read a stored result by its id: a page of lines, or the lines that match a pattern. "
        "Nothing is run again. Lines over 2,000 characters are split.",
        ("id",),
        id={"type": "string", "description": "The id that came with the shortened result (r_...)."},
        offset=integer("First line to show, or with a pattern the first match; counted from 1.", minimum=1),
        limit=integer("How many lines or matches.", minimum=1, maximum=5000),
        pattern={"type": "string", "description": "Regular expression; only matching lines are returned."},
        context=integer("Lines to show around each match.", minimum=0, maximum=20),
    ),
    handler=read_result,
    emoji="📄",
    read_only=True,
    timeout=60,
    # It pages by itself: storing its answer again would send the model round in a loop.
    max_result_size_chars=float("inf"),
    toolset_description="page through a long result",
    example=[
        ("terminal", {"command": "seq 100000"}),
        {"id": "$id", "pattern": "4242"},
        {"id": "$id", "offset": 50000, "limit": 20},
    ],
)
