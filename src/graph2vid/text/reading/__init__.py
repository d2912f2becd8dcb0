"""Reading procedures: plain text, lists, Markdown, schema.org JSON-LD, web pages, recipe-scrapers' JSON."""

from __future__ import annotations

from graph2vid.text.reading.dispatch import procedure_from_bytes, procedure_from_text, procedure_of, read_procedure

__all__ = ["procedure_from_bytes", "procedure_from_text", "procedure_of", "read_procedure"]
