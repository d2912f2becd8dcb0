"""The README as the long description of the package: made when sdist and wheel are built (see pyproject.toml).

Links to files and the picture lead somewhere in the repository alone; elsewhere they would be broken, so that there
the picture is left out and of such links the words are kept.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_PICTURE = re.compile(r"!\[[^\]]*\]\((?!https?://)[^)]+\)\n+")
_LINK = re.compile(r"\[([^\]]+)\]\((?!https?://)[^)]+\)")


def dynamic_metadata(settings: Mapping[str, Any], project: Mapping[str, Any]) -> dict[str, Any]:
    """Return the long description; scikit-build-core asks for it."""
    text = Path("README.md").read_text(encoding="utf-8")
    return {"readme": {"content-type": "text/markdown", "text": _LINK.sub(r"\1", _PICTURE.sub("", text))}}
