"""Additions while the documentation is built: the changelog as a page, and how much each part counts in search."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

_NAMES = re.compile(r"<!-- generated: names ([^\n]*) -->\n.*?<!-- /generated -->", flags=re.DOTALL)

# Whoever searches wants a guide first, and a table of an experiment or the changelog last.
BOOST = {"start": 2.0, "guides": 2.0, "background": 1.2, "reference": 1.0, "appendix": 0.3, "changelog": 0.1}


def on_files(files: Files, *, config: Any) -> Files:
    """Add the changelog, which stands at the root of the repository."""
    text = (Path(__file__).parent.parent / "CHANGELOG.md").read_text(encoding="utf-8")
    files.append(File.generated(config, "changelog.md", content=text))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Set the weight of a page in search, and let full descriptions follow tables of names."""
    markdown = _NAMES.sub(_with_descriptions, markdown)
    page.meta.setdefault("search", {"boost": BOOST.get(page.url.split("/")[0], 1.0)})
    return markdown


def _with_descriptions(table: re.Match[str]) -> str:
    return "\n\n".join([table[0], *(f"::: {name}" for name in table[1].split())])
