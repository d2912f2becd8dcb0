"""Starting the studio."""

from __future__ import annotations

import contextlib
import os
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


def kept_token(folder: Path) -> str:
    """Return the token of a folder of projects, which its owner alone can read; made up the first time.

    It stays the same, so that a page that is open goes on when the studio is started again.
    """
    path = folder / ".token"
    with contextlib.suppress(OSError, InputError):
        is_private = os.name != "posix" or not path.lstat().st_mode & 0o077
        if is_private and path.is_file() and not path.is_symlink():
            return check_token(path.read_text(encoding="utf-8").strip())
    token = secrets.token_urlsafe(24)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write_privately(path, token)
    except OSError as error:
        raise Graph2VidError(f"cannot use the folder {folder}: {error.strerror}") from error
    return token


def page_to_open(folder: Path, address: str) -> Path:
    """Write a page that leads to an address, for its owner alone: others see what a browser is started with."""
    path = folder / "open-studio.html"
    lead = f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={address}">'
    _write_privately(path, f'{lead}<title>graph2vid studio</title><a href="{address}">Open the studio</a>\n')
    return path


def _write_privately(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)


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
        The address to bind to.
    port : int
        0: any that is free.
    videos : Path, optional
        A folder whose videos and captions can be chosen.
    token : str, optional
        What every request must carry, so that other accounts of this machine cannot use the studio; by default that
        of the folder (:func:`kept_token`).
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
    listening = _bound(host, port)
    try:
        token = token or kept_token(folder)
        access = Access(loopback=is_loopback(host), token=token)
        app = create_app(folder, videos=videos, access=access, upload_limit=upload_limit or UPLOAD_LIMIT)
        quiet: Any = {"log_level": "warning", "access_log": False, "server_header": False, "ws": "none"}
        server = uvicorn.Server(uvicorn.Config(app, timeout_graceful_shutdown=2, **quiet))
        name = socket.gethostname() if host in ("0.0.0.0", "::") else host
        shown = f"[{name}]" if ":" in name else name
        address = f"http://{shown}:{listening.getsockname()[1]}/"
        started(f"{address}?token={token}")
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
