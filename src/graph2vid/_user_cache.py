"""Where this user's cache is."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

FOLDER_VARIABLE = "GRAPH2VID_CACHE"
"""The environment variable that names the folder of the cache."""


def cache_folder() -> Path:
    """Return the folder of the user's cache: ``$GRAPH2VID_CACHE``, else where this system keeps caches."""
    chosen = os.environ.get(FOLDER_VARIABLE)
    if chosen:
        return Path(chosen)
    try:
        home = Path.home()
    except RuntimeError:  # a user whom this system does not know
        return Path(tempfile.gettempdir()) / f"graph2vid-{os.getuid()}"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local") / "graph2vid" / "Cache"
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "graph2vid"
    users = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (users if users.is_absolute() else home / ".cache") / "graph2vid"
