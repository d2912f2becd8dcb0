"""Show the cross-references of docstrings (``:meth:`chain```) as code, not being Sphinx."""

from __future__ import annotations

import re
from typing import Any

import griffe

_ROLE = re.compile(r":(?:\w+:)?(?:attr|class|data|func|meth|mod|obj|ref):`~?([^`<]+)`")


class PlainRoles(griffe.Extension):
    """Rewrites docstrings while the documentation is built."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring of one object."""
        if obj.docstring is not None:
            obj.docstring.value = _ROLE.sub(r"`\1`", obj.docstring.value)
