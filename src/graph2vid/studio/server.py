"""Starting the studio."""

from __future__ import annotations

import contextlib
import re
import secrets
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from graph2vid.errors import Graph2VidError, InputError, MissingDependencyError
from graph2vid.studio.access import Access, is_loopback

_TOKEN = re.compile(r"[A-Za-z0-9._~-]{12,200}")


def check_token(token: str) -> str:
    """Return a token if it can be one."""
    if _TOKEN.fullmatch(token) is None:
        raise InputError("a token has 12 to 200 letters, digits and the signs . _ ~ -")
    return token


def serve(
    folder: Path,
    *,
    host: str = "127.0.0.1",
    port: int = 8765,
    videos: Path | None = None,
    token: str | None = None,
    upload_limit: int | None = None,
    started: Callable[[str], None] = print,
) -> None:
    """Run the studio until it is interrupted.

    Parameters
    ----------
    folder : Path
        Where the projects are kept.
    host : str
        The address to bind to. On any other than this machine's own every request needs the token.
    port : int
        0: any that is free.
    videos : Path, optional
        A folder whose videos and captions can be chosen.
    token : str, optional
        What every request must carry; where one is needed and none is given, one is made up.
    upload_limit : int, optional
        Bytes of a file that is handed in.
    started : callable
        Is told the address to open.
    """
    try:
        import uvicorn

        from graph2vid.studio.app import UPLOAD_LIMIT, create_app
    except ModuleNotFoundError as error:
        raise MissingDependencyError(f"the studio needs the package {error.name}", extra="studio") from error
    if videos is not None and not videos.is_dir():
        raise InputError(f"there is no folder {videos}")
    if token is not None:
        check_token(token)
    elif not is_loopback(host):
        token = secrets.token_urlsafe(24)
    listening = _bound(host, port)
    access = Access(loopback=is_loopback(host), token=token)
    try:
        app = create_app(folder, videos=videos, access=access, upload_limit=upload_limit or UPLOAD_LIMIT)
        quiet: Any = {"log_level": "warning", "access_log": False, "server_header": False, "ws": "none"}
        server = uvicorn.Server(uvicorn.Config(app, timeout_graceful_shutdown=2, **quiet))
        name = socket.gethostname() if host in ("0.0.0.0", "::") else host
        shown = f"[{name}]" if ":" in name else name
        address = f"http://{shown}:{listening.getsockname()[1]}/"
        started(address if token is None else f"{address}?token={token}")
        with contextlib.suppress(KeyboardInterrupt):  # that is how it is ended
            server.run(sockets=[listening])
    finally:
        listening.close()


def _bound(host: str, port: int) -> socket.socket:
    """Return a socket that listens, before anything is told to be there."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listening = socket.socket(family)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(128)
    except (OSError, OverflowError) as error:
        reason = error.strerror if isinstance(error, OSError) else "ports end at 65535"
        raise Graph2VidError(f"cannot listen on {host}, port {port}: {reason} (--port names another)") from error
    return listening
