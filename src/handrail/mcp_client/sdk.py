"""The MCP SDK and the packages that come with it. Each module is imported at its first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..base.lazy_module import lazy_import

if TYPE_CHECKING:
    import anyio
    import httpx2
    import mcp_types
    import pydantic
    import pydantic_core
    from mcp.client import auth as client_auth
    from mcp.client import sse, streamable_http
    from mcp.client.auth.extensions import client_credentials as credentials
    from mcp.shared import auth, exceptions
    from mcp.shared import message as messages
    from mcp_types import version as revisions

    import mcp
else:
    anyio, httpx2, mcp = map(lazy_import, ("anyio", "httpx2", "mcp"))
    mcp_types, pydantic, pydantic_core = map(lazy_import, ("mcp_types", "pydantic", "pydantic_core"))
    client_auth, sse = map(lazy_import, ("mcp.client.auth", "mcp.client.sse"))
    streamable_http = lazy_import("mcp.client.streamable_http")
    auth, exceptions, messages = map(lazy_import, ("mcp.shared.auth", "mcp.shared.exceptions", "mcp.shared.message"))
    credentials = lazy_import("mcp.client.auth.extensions.client_credentials")
    revisions = lazy_import("mcp_types.version")

__all__ = ["anyio", "auth", "client_auth", "credentials", "exceptions", "httpx2", "mcp", "mcp_types", "messages"]
__all__ += ["pydantic", "pydantic_core", "revisions", "sse", "streamable_http"]
