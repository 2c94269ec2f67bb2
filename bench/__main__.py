"""`python -m bench [core] [environments]`: print the tables, all or those named. With --check, fail when a figure is missed."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

from .harness import Figure

_COLUMNS = "{:<48} {:>12} {:>12} {:>7} {:>6}  {}"


def main() -> int:
    with tempfile.TemporaryDirectory() as home:
        os.environ["HANDRAIL_HOME"] = home
        from . import core, environments

        tables = {"core": core.figures, "environments": environments.figures}
        named = [name for name in tables if name in sys.argv[1:]]
        missed = [figure for name in named or tables for figure in _table(name, tables[name]) if not figure.held]
    if missed:
        print(f"missed: {'; '.join(figure.what.strip() for figure in missed)}", file=sys.stderr)
    return 1 if missed and "--check" in sys.argv[1:] else 0


def _table(name: str, figures: Callable[[], Iterator[Figure]]) -> list[Figure]:
    print(_COLUMNS.format(name, "handrail", "floor", "ratio", "limit", "peers (ratio)"))
    rows = []
    for figure in figures():
        rows.append(figure)
        limit = "" if figure.limit is None else f"{figure.limit:g}"
        mark = "" if figure.held else "  MISSED"
        cells = (figure.what, figure.ours, figure.floor, f"{figure.ratio:.2f}", limit, figure.peers + mark)
        print(_COLUMNS.format(*cells), flush=True)
    results = Path(__file__).parent / "results"
    results.mkdir(exist_ok=True)
    content = json.dumps([asdict(figure) for figure in rows], indent=1, ensure_ascii=False)
    (results / f"{name}.json").write_text(content)
    return rows


if __name__ == "__main__":
    sys.exit(main())
