"""`python -m bench`: print the table. With --check, fail when a figure is missed."""

from __future__ import annotations

import itertools
import json
import os
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

_COLUMNS = "{:<48} {:>12} {:>12} {:>7} {:>6}  {}"


def main() -> int:
    with tempfile.TemporaryDirectory() as home:
        os.environ["HANDRAIL_HOME"] = home
        from . import approval, core

        print(_COLUMNS.format("what", "handrail", "floor", "ratio", "limit", "peers (ratio)"))
        rows = []
        for figure in itertools.chain(core.figures(), approval.figures()):
            rows.append(figure)
            limit = "" if figure.limit is None else f"{figure.limit:g}"
            mark = "" if figure.held else "  MISSED"
            cells = (figure.what, figure.ours, figure.floor, f"{figure.ratio:.2f}", limit, figure.peers + mark)
            print(_COLUMNS.format(*cells), flush=True)
    missed = [figure.what.strip() for figure in rows if not figure.held]
    results = Path(__file__).parent / "results"
    results.mkdir(exist_ok=True)
    (results / "core.json").write_text(json.dumps([asdict(figure) for figure in rows], indent=1, ensure_ascii=False))
    if missed:
        print(f"missed: {'; '.join(missed)}", file=sys.stderr)
    return 1 if missed and "--check" in sys.argv[1:] else 0


if __name__ == "__main__":
    sys.exit(main())
