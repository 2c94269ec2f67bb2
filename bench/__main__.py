"""`python -m bench [TABLE...]`: print the tables. With --check, fail when a figure is missed; with --record, keep the ratios in
bench/recorded, which the README's figures are tested against. A busy machine records nothing."""

from __future__ import annotations

import json
import os
import pkgutil
import platform
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict
from importlib import import_module
from pathlib import Path

import bench

from .harness import Figure

_COLUMNS = "{:<48} {:>12} {:>12} {:>7} {:>6}  {}"
_NO_TABLES = ("__main__", "harness", "samples")
# Per core, when the run begins: beyond this, what others do is measured too.
_MAX_LOAD = 0.5


def main() -> int:
    load = os.getloadavg()[0] / (os.cpu_count() or 1)
    if "--record" in sys.argv[1:] and load > _MAX_LOAD:
        print(f"not recorded: the load is {load:.1f} per core, at most {_MAX_LOAD} counts as quiet", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as home:
        os.environ["HANDRAIL_HOME"] = home
        tables = [found.name for found in pkgutil.iter_modules(bench.__path__) if found.name not in _NO_TABLES]
        named = [name for name in tables if name in sys.argv[1:]]
        missed = [figure for name in named or tables for figure in _table(name) if not figure.held]
    if missed:
        print(f"missed: {'; '.join(figure.what.strip() for figure in missed)}", file=sys.stderr)
    return 1 if missed and "--check" in sys.argv[1:] else 0


def _table(name: str) -> list[Figure]:
    """The figures of one module here that has some."""
    figures: Iterator[Figure] = getattr(import_module(f"bench.{name}"), "figures", lambda: iter(()))()
    rows: list[Figure] = []
    for figure in figures:
        if not rows:
            print(_COLUMNS.format(name, "handrail", "floor", "ratio", "limit", "peers (ratio)"))
        rows.append(figure)
        limit = "" if figure.limit is None else f"{figure.limit:g}"
        mark = "" if figure.held else "  MISSED"
        cells = (figure.what, figure.ours, figure.floor, f"{figure.ratio:.2f}", limit, figure.peers + mark)
        print(_COLUMNS.format(*cells), flush=True)
    results = Path(__file__).parent / "results"
    results.mkdir(exist_ok=True)
    content = json.dumps([asdict(figure) for figure in rows], indent=1, ensure_ascii=False)
    (results / f"{name}.json").write_text(content)
    if "--record" in sys.argv[1:]:
        machine = (
            f"{os.cpu_count()} cores, Python {platform.python_version()}, "
            f"{platform.system()} {'.'.join(platform.release().split('.')[:2])}"
        )
        about = {"recorded": time.strftime("%Y-%m-%d", time.gmtime()), "on": machine}
        ratios = about | {figure.what.strip(): round(figure.ratio, 2) for figure in rows}
        (results.parent / "recorded" / f"{name}.json").write_text(
            json.dumps(ratios, indent=1, ensure_ascii=False) + "\n"
        )
    return rows


if __name__ == "__main__":
    sys.exit(main())
