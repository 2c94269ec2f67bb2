"""Say in a sentence why a server cannot be used, and what to do about it."""

import re
import ssl

from ..base.safe_text import mask_secrets
from .sdk import client_auth, httpx2
from .server_config import Server, token_hint
from .stdio import Process

_MAX_NOISE = 80
_REFUSED = "Server returned an error response"  # as the SDK has any other status of HTTP
_HINTS = {"401": "it does not accept the token that you send", "403": "your login or token has no right there"}
# What programs print when a package of theirs is missing.
_MISSING_PACKAGES = (
    r"(?:ModuleNotFoundError|python[\d.]*): No module named '?(?P<name>[\w.-]+)",
    r"Cannot find (?:module|package) '?(?P<name>[@\w./-]+)",
    r"(?:npm error|npm ERR!) 404 +'?(?P<name>[@\w./-]+?)(?:@[\w.*^~-]+)?'? is not in",
    r"No matching distribution found for (?P<name>[\w.-]+)",
    r"(?:Because|because) (?P<name>[\w.-]+) was not found in the package registry",
)


def explained(why: str, process: Process | None) -> str:
    """A reason, with what the server's program printed and what that means."""
    if process is None:
        return why
    tail, printed = process.tail(), process.stderr.decode("utf-8", "replace")
    found = (re.search(pattern, printed) for pattern in _MISSING_PACKAGES)
    missing = next((match["name"] for match in found if match), "")
    if missing.startswith("/"):
        return f"{why}: there is no file {missing}; correct it in the command"
    if missing:
        return f"{why}: the package {missing} is missing; install it, or correct its name in the command\n{tail}"
    if process.noise and (not tail or process.child.returncode is None):
        stray = f"it printed {process.noise[:_MAX_NOISE]!r} to its standard output, where only MCP messages belong"
        return f"{why}: {stray}; start it in its stdio mode, or have it log to standard error"
    return f"{why}: {tail}" if tail else why


def connect_problem(error: BaseException, server: Server, answer: str) -> str:
    """Why a server at an address cannot be reached or used; empty if the error says it itself. `answer` is how it answered last,
    as HTTP has it: a status and its name, or a content type."""
    url, text = mask_secrets(server.settings.url), str(error)
    if isinstance(error, httpx2.HTTPStatusError):  # of the older transport
        text = {404: "Not Found", 405: "Method Not Allowed"}.get(error.response.status_code, _REFUSED)
    if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout):
        if "WRONG_VERSION_NUMBER" in text:
            return f"what answers at {url} does not speak TLS; write http:// in place of https://"
        if "CERTIFICATE_VERIFY_FAILED" in text:
            return f"the certificate of {url} is not trusted here ({text}); mcp_servers.{server.name}.ca_file names its authority"
        return f"nobody answers at {url} ({error}); check the address, and whether the server runs"
    if isinstance(error, httpx2.NetworkError | httpx2.RemoteProtocolError | ssl.SSLError) and url.startswith("https:"):
        hint = f"if it wants a certificate that it knows, mcp_servers.{server.name}.tls_cert names yours"
        return f"{url} broke off ({text or type(error).__name__}); {hint}"
    if text in ("Not Found", "Method Not Allowed", "Session terminated"):  # as the SDK has HTTP's 404 and 405
        return f"there is no MCP server at {url} ({text}); check the path of the address"
    if text == _REFUSED:
        known = _HINTS.get(answer[:3])
        hint = f"{known}; {token_hint(server)}" if known else "try later"
        return f"{url} answered {answer or 'with an error'}; {hint}"
    if text.startswith(("Unexpected content type", "Failed to parse JSON")):
        what = answer or "nothing" if text.startswith("U") else "something other than MCP messages"
        return f"what answers at {url} is no MCP server: it sent {what}; check the path of the address"
    if server.settings.url and isinstance(error, client_auth.OAuthRegistrationError | client_auth.OAuthFlowError):
        return f"the login there does not work ({error}); {token_hint(server)}"
    return ""
