"""Access: who may ask what, how much they may send, and what browsers are told to refuse."""

from __future__ import annotations

import hmac
import json
import re
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any
from urllib.parse import SplitResult, parse_qs, urlsplit

COOKIE = "graph2vid_token"
"""The name of the cookie, before the port: all studios of a machine share its cookies."""

MOST_BODY = 1 << 20
"""Bytes of a request, except where a file is handed in."""

_HEADERS = {
    "content-security-policy": "default-src 'self'; img-src 'self' data:; media-src 'self' blob:; object-src 'none'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}


_CLOSED = """<!doctype html><html lang="en"><meta charset="utf-8"><title>graph2vid studio</title>
<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">
<h1>This studio is not open here</h1>
<p>It belongs to whoever started it. Open the address that it printed when it started: the token in it lets you in,
and this browser keeps it.</p></html>"""


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server bound to ``host``."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


@dataclass(frozen=True)
class Access:
    """Who may come in.

    Attributes
    ----------
    loopback : bool
        The server is bound to this machine alone: requests must name it as this machine, so that no page elsewhere can
        reach it by a name of its own (DNS rebinding).
    token : str or None
        What every request must carry: a cookie, or ``Authorization: Bearer``.
    """

    loopback: bool = True
    token: str | None = None

    def objection(self, headers: dict[str, str], path: str, navigates: bool) -> tuple[int, str] | None:
        """Return the status and the reason with which a request is refused, or None.

        Parameters
        ----------
        headers : dict of str to str
            Names in lower case.
        path : str
        navigates : bool
            It asks for a page (GET or HEAD).
        """
        host = headers.get("host", "")
        named, origin = _split(f"//{host}"), _split(headers.get("origin", f"//{host}"))
        if self.loopback and (named is None or not is_loopback(named.hostname or "")):
            return 421, "this studio answers to localhost alone"
        is_foreign = origin is None or origin.netloc.lower() != host.lower()
        site = headers.get("sec-fetch-site", "none")
        follows_link = navigates and path == "/" and headers.get("sec-fetch-mode") == "navigate"
        if is_foreign or (site not in ("none", "same-origin") and not follows_link):
            return 403, "requests from other sites are refused"
        if self.token is not None and not self._knows_token(headers):
            return 401, "this studio needs its token: open the address that it printed when it started"
        return None

    def admits(self, token: str) -> bool:
        """Whether this is the token."""
        return self.token is not None and hmac.compare_digest(token.encode(), self.token.encode())

    def _knows_token(self, headers: dict[str, str]) -> bool:
        scheme, _, value = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return self.admits(value.strip())
        # Other programs on this host set cookies, too: http.cookies drops all where one of theirs is odd.
        cookies = (cookie.partition("=") for cookie in headers.get("cookie", "").split(";"))
        own = _cookie_name(headers)
        return any(name.strip() == own and self.admits(value.strip()) for name, _, value in cookies)


def _cookie_name(headers: dict[str, str]) -> str:
    port = headers.get("host", "").rpartition(":")[2]
    return f"{COOKIE}_{port}" if port.isdecimal() else COOKIE


def _split(url: str) -> SplitResult | None:
    try:
        return urlsplit(url)
    except ValueError:
        return None


class Guard:
    """ASGI middleware that holds requests to a :class:`Access` and adds the headers that browsers obey.

    Parameters
    ----------
    app : ASGI application
    access : Access
    uploads : pattern
        A method and a path where a file may be handed in; its size is limited where it is read.
    """

    def __init__(self, app: Any, access: Access, uploads: re.Pattern[str]) -> None:
        self.app, self.access, self.uploads = app, access, uploads

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer, or hand on."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return  # there are no web sockets here
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        path, method = scope["path"], scope["method"]

        async def send_safely(message: Any) -> None:
            if message["type"] == "http.response.start":
                named = {name.lower() for name, _ in message["headers"]}
                extra = _HEADERS | {"cache-control": "no-store" if path.startswith("/api/") else "no-cache"}
                message["headers"] = [
                    *message["headers"],
                    *((name.encode(), value.encode()) for name, value in extra.items() if name.encode() not in named),
                ]
            await send(message)

        objection = self.access.objection(headers, path, method in ("GET", "HEAD"))
        if objection is not None and objection[0] == 401 and path == "/" and method == "GET":
            token = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
            if self.access.admits(token):
                # Lax: whoever follows a link to the studio comes in; other sites are refused by their origin.
                cookie = f"{_cookie_name(headers)}={token}; HttpOnly; SameSite=Lax; Path=/; Max-Age=31536000"
                await _answer(send_safely, 303, b"", {"location": "/", "set-cookie": cookie})
                return
        is_upload = self.uploads.fullmatch(f"{method} {path}") is not None
        length = headers.get("content-length", "0")
        if objection is None and not is_upload and length.isdecimal() and int(length) > MOST_BODY:
            objection = 413, f"a request may have up to {MOST_BODY >> 20} MiB"
        if objection is not None:
            if objection[0] == 401 and path in ("/", "/docs") and method == "GET":
                await _answer(send_safely, 401, _CLOSED.encode(), {"content-type": "text/html; charset=utf-8"})
                return
            await _answer(send_safely, objection[0], json.dumps({"error": objection[1]}).encode())
            return
        received = 0

        async def receive_little() -> Any:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            # More may be sent in pieces, without saying how much.
            return {"type": "http.disconnect"} if received > MOST_BODY else message

        await self.app(scope, receive if is_upload else receive_little, send_safely)


async def _answer(send: Any, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
    named = {"content-type": "application/json", "content-length": str(len(body)), **(headers or {})}
    pairs = [(name.encode(), value.encode("latin-1")) for name, value in named.items()]
    await send({"type": "http.response.start", "status": status, "headers": pairs})
    await send({"type": "http.response.body", "body": body})
