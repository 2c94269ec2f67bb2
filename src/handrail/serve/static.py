"""The web console: files that were built from `web/` and are part of the package."""

from __future__ import annotations

from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "console"
_NOT_BUILT = """<!doctype html><meta charset="utf-8"><title>Handrail</title>
<p>The API runs, but the web console was not built. In a clone of the project, run <code>make console</code> (it needs npm);
packages from PyPI have it.</p>
"""


def console() -> list[Any]:
    """Routes for it. Pages are public; what they show is not."""
    from starlette.responses import FileResponse, HTMLResponse, Response
    from starlette.routing import Mount, Route
    from starlette.staticfiles import StaticFiles

    async def index(_: Any) -> Response:
        page = FOLDER / "index.html"
        return FileResponse(page) if page.is_file() else HTMLResponse(_NOT_BUILT)

    routes: list[Any] = [Route("/", index, methods=["GET"])]
    if (FOLDER / "assets").is_dir():
        routes.append(Mount("/assets", StaticFiles(directory=FOLDER / "assets")))
    return routes
