"""The web console: files that are built from `web/` and shipped in the package."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

FOLDER = Path(__file__).parent / "console"
_NOT_BUILT = """<!doctype html><meta charset="utf-8"><title>Handrail</title>
<p>The API runs, but the web console was not built. In a clone of the project, run <code>make console</code> (it needs npm);
packages from PyPI have it.</p>
"""


def console() -> list[Any]:
    """Its routes. The pages are public, their data is not."""

    async def index(_: Any) -> Response:
        page = FOLDER / "index.html"
        return FileResponse(page) if page.is_file() else HTMLResponse(_NOT_BUILT)

    # A login link shows the same page, which sends the link's code: whatever only looks at the link does not use it up.
    routes: list[Any] = [Route(path, index, methods=["GET"]) for path in ("/", "/login")]
    if (FOLDER / "assets").is_dir():
        routes.append(Mount("/assets", StaticFiles(directory=FOLDER / "assets")))
    return routes
